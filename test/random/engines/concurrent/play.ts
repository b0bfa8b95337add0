import { setTimeout as wait } from "node:timers/promises";
import { systemClock } from "../../../../src/domain/clock.ts";
import { BatonError } from "../../../../src/domain/errors.ts";
import type * as port from "../../../../src/engine/port.ts";
import type { LosingWay } from "./losing-way.ts";
import { type State, endsUnbegun, fatesOf, leaseSurelyUntil, statesOf } from "./fates.ts";
import { History, type Leased, runOf, type Span } from "./history.ts";
import { type Call, type EndingWish, LEVELS, type Plan, type RenewalWish, type Wish } from "./plan.ts";

const FAR_MS = 3_600_000;
/** What is written is seen by everybody, within this time on a slow machine. */
const SEEN_MS = 15_000;
const LOOK_MS = 20;
const ALL = 200;
const STIR_MS = 300;
/** Everything ends within this time when nothing is in its way, on a slow machine. */
const DRAIN_MS = 45_000;
const DRAIN_ITEMS = 3;

export interface Stage {
  readonly engines: readonly port.Engine[];
  readonly way: LosingWay | undefined;
  readonly queue: string;
  /** What is short lasts so long. */
  readonly shortMs: number;
  /** What has come due is late by so much at most. */
  readonly lateMs: number;
  /** What is counted of a queue is what there is. */
  readonly countsExactly: boolean;
  /** What has come due is seen when somebody asks for work. */
  readonly comesWhenAsked: boolean;
}

/** Plays a plan and writes down its history. What the store says between the rounds is held against it at once. */
export class Play {
  readonly history: History = new History();
  readonly found: string[] = [];
  readonly #stage: Stage;
  readonly #plan: Plan;
  /** Who was given a lease; nobody else can settle it. */
  readonly #owners = new Map<port.Lease, port.Engine>();
  #tags = 0;

  constructor(stage: Stage, plan: Plan) {
    this.#stage = stage;
    this.#plan = plan;
  }

  async play(): Promise<void> {
    const { engines, queue } = this.#stage;
    for (const engine of engines) await engine.declare({ queue, levels: LEVELS });
    for (const round of this.#plan.rounds) {
      const enough = new AbortController();
      const claims: Promise<void>[] = [];
      const others: Promise<void>[] = [];
      for (const call of round) {
        const made = this.#call(call, enough.signal);
        (call.do === "claim" ? claims : others).push(made);
      }
      await Promise.all(others);
      // Any call that takes its turn behind the claims.
      if (claims.length > 0) for (const engine of engines.slice(0, 2)) await engine.queues({ queue });
      enough.abort();
      await Promise.all(claims);
      if (!this.#plan.isLossy) await this.#look();
      if (this.found.length > 0) return;
    }
    await this.#drain();
  }

  async #call(call: Call, enough: AbortSignal): Promise<void> {
    const { engines, queue, shortMs, lateMs, way } = this.#stage;
    const { history } = this;
    const engine = engines[call.by % engines.length];
    if (engine === undefined) return;
    switch (call.do) {
      case "submit": {
        const submissions = call.wishes.map((wish) => this.#submission(wish));
        const { result, span } = await timed(() => engine.submit(submissions));
        for (const [index, submission] of submissions.entries())
          history.submitted.push({
            ...span,
            tag: String(submission.payload.body),
            submission,
            result: result?.[index],
          });
        break;
      }
      case "claim": {
        const leaseMs = call.short ? shortMs : FAR_MS;
        const request = {
          queue,
          worker: `worker ${call.worker}`,
          max: call.max,
          leaseMs,
          patienceMs: FAR_MS,
          signal: enough,
          ...(call.items === undefined ? {} : { items: call.items }),
        };
        const { result, span } = await timed(() => engine.claim(request));
        for (const { lease, item, behind = [] } of result ?? [])
          this.#note(engine, { ...span, lease, item, behind, leaseMs });
        break;
      }
      case "hold": {
        const leaseMs = shortMs;
        const request = { queue, key: keyName(call.key), worker: "holder", leaseMs, signal: AbortSignal.abort() };
        const { result, span } = await timed(() => engine.hold(request));
        if (result !== undefined) this.#note(engine, { ...span, lease: result, item: undefined, behind: [], leaseMs });
        break;
      }
      case "settle": {
        const wanted = call.endings.flatMap((wish) =>
          this.#leased(engine, wish.lease).map((leased) => ({ leased, wish })),
        );
        await this.#settle(
          engine,
          wanted.map(({ leased, wish }) => ({
            leased,
            report: { ...this.#ended(leased, wish), ending: this.#ending(wish) },
          })),
        );
        break;
      }
      case "renew": {
        const wanted = call.renewals.flatMap((wish) =>
          this.#leased(engine, wish.lease).map((leased) => ({ leased, report: this.#ended(leased, wish) })),
        );
        const orders = wanted.map(() => history.nextOrder());
        const renewals = wanted.map(({ leased: { lease }, report }) => ({
          lease,
          leaseMs: FAR_MS,
          progress: 0.5,
          ...report,
        }));
        const { result, span } = await timed(() => engine.renew(renewals));
        for (const [index, { leased, report }] of wanted.entries())
          history.renewed.push({
            ...span,
            order: orders[index] ?? 0,
            leased,
            leaseMs: FAR_MS,
            before: report.ended,
            result: result?.[index],
          });
        break;
      }
      case "cancel": {
        const ids = history.submitted.flatMap((one) => (one.result?.ok === true ? [one.result.accepted.id] : []));
        const id = ids.at(-1 - (call.item % Math.max(1, ids.length)));
        if (id === undefined) break;
        const { result, span } = await timed(() => engine.cancel({ queue, id }));
        history.cancelled.push({ ...span, id, result });
        break;
      }
      case "pause":
        await timed(() =>
          engine.pause({ queue, paused: call.paused, ...(call.key === undefined ? {} : { key: keyName(call.key) }) }),
        );
        break;
      case "revive": {
        const { result, span } = await timed(() => engine.revive({ queue, action: call.action }));
        history.revived.push({ ...span, action: call.action, count: result });
        break;
      }
      case "wait":
        await wait(shortMs + lateMs);
        if (this.#stage.comesWhenAsked) await this.#stir();
        break;
      case "lose":
        way?.lose();
        break;
    }
  }

  /** Somebody asks for work, and takes what there is. */
  async #stir(): Promise<void> {
    const some = AbortSignal.timeout(STIR_MS);
    await this.#call({ do: "claim", by: 0, worker: 8, max: ALL, short: false }, some);
  }

  async #settle(
    engine: port.Engine,
    wanted: readonly { readonly leased: Leased; readonly report: Omit<port.Settlement, "lease"> }[],
  ): Promise<void> {
    const orders = wanted.map(() => this.history.nextOrder());
    const { result, span } = await timed(() =>
      engine.settle(wanted.map(({ leased, report }) => ({ lease: leased.lease, ...report }))),
    );
    for (const [index, { leased, report }] of wanted.entries())
      this.history.settled.push({
        ...span,
        order: orders[index] ?? 0,
        leased,
        before: report.ended ?? [],
        ending: report.ending,
        result: result?.[index],
      });
  }

  /** What the store says of the queue, when nothing is on its way: as soon as it agrees with the history. */
  async #look(): Promise<void> {
    const end = performance.now() + SEEN_MS;
    for (;;) {
      const differences = await this.#differences();
      if (differences.length === 0) return;
      if (performance.now() > end) {
        this.found.push(...differences);
        return;
      }
      await wait(LOOK_MS);
      if (this.#stage.comesWhenAsked) await this.#stir();
    }
  }

  async #differences(): Promise<readonly string[]> {
    const { engines, queue } = this.#stage;
    const [engine] = engines;
    const [report] = (await engine?.queues({ queue })) ?? [];
    if (engine === undefined || report === undefined) return ["the queue has no report"];
    const keys = await engine.keys({ queue, limit: ALL });
    const letters = await engine.dead({ queue, limit: ALL });
    const states = fatesOf(this.history).map((fate) => statesOf(fate, this.history));
    const found: string[] = [];
    const within = (what: string, count: number, state: State): void => {
      const most = states.filter((possible) => possible.has(state)).length;
      const least = states.filter((possible) => possible.size === 1 && possible.has(state)).length;
      // Where several at once submit an id, some stores find out later which of their items is void.
      if (count < least || (count > most && this.#stage.countsExactly))
        found.push(
          `the store counts ${count} ${what}, by the history there are ${least === most ? least : `${least} to ${most}`}`,
        );
    };
    const { waiting, delayed, running, dead, levels } = report;
    within("living items", waiting + delayed + running, "live");
    within("dead letters", dead, "dead");
    const sum = (counts: readonly number[]): number => counts.reduce((total, count) => total + count, 0);
    const agree = (what: string, one: number, other: number): void => {
      if (one !== other) found.push(`${what}: ${one} and ${other}`);
    };
    agree("waiting, in the queue and on its keys", waiting, sum(keys.map((key) => key.waiting)));
    agree("delayed, in the queue and on its keys", delayed, sum(keys.map((key) => key.delayed)));
    agree("waiting, in the queue and at its levels", waiting, sum(levels.map((level) => level.waiting)));
    agree("running, in the queue and of its keys", running, keys.filter(({ state }) => state === "running").length);
    agree("dead, in the queue and in the list", dead, letters.length);
    const now = systemClock.monotonic();
    const current = this.history.leased.filter(
      (leased) =>
        leaseSurelyUntil(leased, this.history) > now + 1_000 &&
        !this.history.settled.some((one) => one.leased === leased && one.result === "settled"),
    );
    for (const { lease } of current) {
      const shown = keys.find(({ key }) => key === lease.key)?.running?.fence;
      if (shown !== lease.fence)
        found.push(`key ${lease.key} is leased under fence ${lease.fence}, and shown with ${shown ?? "none"}`);
    }
    return found;
  }

  /** Everything goes on and is done, until there is nothing left. Then each item has ended as it was told. */
  async #drain(): Promise<void> {
    const { engines, queue } = this.#stage;
    const [engine] = engines;
    if (engine === undefined) return;
    await engine.pause({ queue, paused: false });
    for (let key = 0; key < KEYS.length; key += 1) await engine.pause({ queue, key: keyName(key), paused: false });
    await this.#call({ do: "revive", by: 0, action: "retry" }, AbortSignal.abort());
    const current = this.history.leased.filter(({ lease }) => this.#owner(lease) !== undefined);
    for (const leased of current)
      await this.#settle(this.#owner(leased.lease) ?? engine, [{ leased, report: { ending: { type: "done" } } }]);
    const end = performance.now() + DRAIN_MS;
    for (;;) {
      const [report] = await engine.queues({ queue });
      if (report === undefined) break;
      const { waiting, delayed, running } = report;
      if (waiting + delayed + running === 0) break;
      if (performance.now() > end) {
        this.found.push(
          `${waiting} items wait, ${delayed} are delayed and ${running} run, and nothing brings them to an end`,
        );
        return;
      }
      const from = this.history.leased.length;
      const some = AbortSignal.timeout(this.#stage.shortMs);
      const items = engine.runs === true ? { items: DRAIN_ITEMS } : {};
      await this.#call({ do: "claim", by: 0, worker: 9, max: ALL, short: false, ...items }, some);
      const grants = this.history.leased.slice(from);
      await this.#settle(
        engine,
        grants.map((leased) => ({
          leased,
          report: { ...this.#ended(leased, { lease: 0, ended: DRAIN_ITEMS }), ending: { type: "done" } },
        })),
      );
    }
    await this.#finish(engine);
  }

  async #finish(engine: port.Engine): Promise<void> {
    const { queue } = this.#stage;
    for (const fate of fatesOf(this.history)) {
      const { id, tag, ends, submitted } = fate;
      const states = statesOf(fate, this.history);
      if (!states.has("ended") && !this.#plan.isLossy) this.found.push(`item ${tag} has not ended, and is gone`);
      if (id === undefined || submitted.submission.keepMs === 0 || this.#plan.isLossy) continue;
      const outcome = await engine.outcome({ queue, id, signal: AbortSignal.timeout(SEEN_MS) });
      const [end] = ends;
      if (outcome === undefined) this.found.push(`item ${tag} is to be remembered, and has no outcome`);
      if (outcome !== undefined && endsUnbegun(fate) && outcome.state !== "cancelled")
        this.found.push(`item ${tag} was to be cancelled before it began, and its outcome is ${outcome.state}`);
      if (outcome === undefined || end === undefined) continue;
      if (outcome.state !== end.how) this.found.push(`item ${tag} was ${end.how}, and its outcome is ${outcome.state}`);
      const last = fate.turns.at(-1)?.item.attempt;
      if (end.how === "done" && outcome.attempt !== last)
        this.found.push(`item ${tag} was done at attempt ${last ?? 0}, and its outcome says ${outcome.attempt}`);
      const { ending } = end;
      const said = ending?.type === "done" ? ending.result?.body : undefined;
      if (outcome.result?.body !== said) this.found.push(`item ${tag} has not the result that it was settled with`);
    }
  }

  #note(engine: port.Engine, leased: Leased): void {
    this.history.leased.push(leased);
    this.#owners.set(leased.lease, engine);
  }

  #owner(lease: port.Lease): port.Engine | undefined {
    return this.#owners.get(lease);
  }

  /** Of those of this handle, the one that was granted so many ago. */
  #leased(engine: port.Engine, ago: number): readonly Leased[] {
    const own = this.history.leased.filter(({ lease }) => this.#owner(lease) === engine);
    const leased = own.at(-1 - (ago % Math.max(1, own.length)));
    return leased === undefined ? [] : [leased];
  }

  /** Where there are no runs, nothing is said of them. */
  #ended(leased: Leased, { ended }: RenewalWish): { readonly ended?: readonly port.EndedItem[] } {
    if (ended === undefined) return {};
    const before = runOf(leased).slice(0, -1);
    const result = { type: "text/plain", body: "a result of a run" };
    return {
      ended: before.slice(0, ended).map(({ id }, index): port.EndedItem => {
        if (index % 3 === 2) return { id, ending: { type: "cancelled" } };
        return { id, ending: index === 0 ? { type: "done", result } : { type: "done" } };
      }),
    };
  }

  #submission({ key, id, level, mode, delayed, kept }: Wish): port.Submission {
    const { keyLimit, queueLimit } = this.#plan;
    return {
      queue: this.#stage.queue,
      key: keyName(key),
      level: LEVELS[level % LEVELS.length] ?? "",
      mode,
      keyLimit,
      queueLimit,
      payload: { type: "text/plain", body: `item ${(this.#tags += 1)}` },
      delayMs: delayed ? this.#stage.shortMs : 0,
      keepMs: kept ? FAR_MS : 0,
      ...(id === undefined ? {} : { id: `id ${id}` }),
    };
  }

  #ending({ type, delayed }: EndingWish): port.Ending {
    switch (type) {
      case "done":
        return delayed ? { type, result: { type: "text/plain", body: "a result" } } : { type };
      case "retry":
      case "yield":
        return {
          type: "retry",
          delayMs: delayed ? this.#stage.shortMs : 0,
          place: type === "retry" ? "keep" : "yield",
          failure: { message: "not yet" },
        };
      case "dead":
        return { type, failure: { message: "never" } };
      case "cancelled":
      case "release":
        return { type };
    }
  }
}

/** What was lost, or refused because the way is gone, has no result. */
async function timed<T>(call: () => Promise<T>): Promise<{ readonly result: T | undefined; readonly span: Span }> {
  const begun = systemClock.monotonic();
  let result: T | undefined;
  try {
    result = await call();
  } catch (error) {
    if (!(error instanceof BatonError) || !LOST.has(error.code)) throw error;
  }
  return { result, span: { begun, ended: systemClock.monotonic() } };
}

const LOST: ReadonlySet<string> = new Set(["OUTCOME_UNKNOWN", "STORE_UNAVAILABLE"]);
const KEYS = ["car", "auto", "Žuk", "z", "🚗", "e", "f", "g"];

function keyName(number: number): string {
  return KEYS[number % KEYS.length] ?? "car";
}
