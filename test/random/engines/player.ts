import { setTimeout as wait } from "node:timers/promises";
import type * as port from "../../../src/engine/port.ts";
import { Answers } from "./answers.ts";
import type { Handles } from "./handles.ts";
import {
  type Burst,
  type EndedWish,
  type EndingWish,
  type Entry,
  KEYS,
  QUEUES,
  type Step,
  type Time,
} from "./script.ts";

/** So long that nothing comes due while a script is played. */
const FAR_MS = 3_600_000;
const PATIENCE_MS = 10 * FAR_MS;
/** What the model says is there must come within this time, on a slow and busy machine. */
const COMES_MS = 20_000;
const STIR_MS = 300;
/** Enough for all keys of a queue. */
const ALL = 100;

export interface Side {
  readonly handles: Handles;
  readonly prefix: string;
  readonly levels: readonly string[];
  readonly ms: (time: Time) => number;
  /** The same for what comes due by itself. */
  readonly dueMs: (time: Time) => number;
  /** By the wall clock, when the script began. */
  readonly zero: number;
  /** Fields with times that are a matter of the store. */
  readonly looseTimes: readonly string[];
  /** Leases cover runs, and items say how often theirs was lost. */
  readonly runs: boolean;
}

interface Granted {
  readonly lease: port.Lease;
  readonly engine: port.Engine;
  /** The ids of its run, as it was granted. */
  readonly run: readonly string[];
}

/** What a step asks for, with what it names found; asked for later. */
type Call = (expected: unknown) => Promise<unknown>;

/** Plays one script on one side, the model or the store, in queues of its own, and gives the answers in a form that can be compared. */
export class Player {
  readonly #side: Side;
  readonly #answers: Answers;
  readonly #leases: Granted[] = [];
  /** Ids in the order in which they were accepted, per queue. */
  readonly #ids = new Map<number, string[]>();
  readonly #kept = new Set<string>();
  #claims = 0;

  constructor(side: Side) {
    this.#side = side;
    this.#answers = new Answers(side.zero, side.looseTimes, side.runs ? [] : ["losses"]);
  }

  async begin(): Promise<void> {
    const { handles, levels } = this.#side;
    for (const engine of handles.all()) for (const queue of this.#queues()) await engine.declare({ queue, levels });
  }

  /** @param scattered the queues in which the order of ready keys is open: there a claim takes all. */
  async play(burst: Burst, scattered: ReadonlySet<number>, expected: readonly unknown[]): Promise<readonly unknown[]> {
    // What a step refers to is settled before any of the burst is asked for.
    const calls = burst.map((step) => this.#call(step, scattered));
    const results = await Promise.all(calls.map((call, index) => call(expected[index])));
    for (const [index, step] of burst.entries()) this.#note(step, results[index]);
    return burst.map((step, index) => this.#answers.comparable(results[index], this.#queueOf(step)));
  }

  /** Everything that can be seen of the queues and of each item that there was. */
  async look(expected: unknown): Promise<unknown> {
    const seen: unknown[] = [];
    const model = Array.isArray(expected) ? (expected as unknown[]) : [];
    const engine = this.#side.handles.at(1);
    for (let number = 0; number < QUEUES; number += 1) {
      const queue = this.#queue(number);
      const ids = [...new Set(this.#idsOf(number))];
      const found: unknown[] = [
        await engine.queues({ queue }),
        await pages(
          (after) => engine.keys({ queue, limit: 2, ...after }),
          ({ key }) => key,
        ),
        await engine.keys({ queue, limit: ALL, leased: true }),
        await pages(
          (after) => engine.dead({ queue, limit: 2, ...after }),
          ({ id }) => id,
        ),
        await Promise.all(ids.map((id) => engine.find({ queue, id }))),
      ];
      const place = seen.length;
      seen.push(this.#answers.comparable(found, queue));
      seen.push(
        await Promise.all(
          ids.map(async (id, index) => {
            const outcomes = model[place + 1];
            const outcome = await this.#outcome(
              engine,
              number,
              id,
              Array.isArray(outcomes) ? outcomes[index] : undefined,
            );
            return this.#answers.comparable(outcome, queue);
          }),
        ),
      );
    }
    return seen;
  }

  #call(step: Step, scattered: ReadonlySet<number>): Call {
    const engine = this.#side.handles.at(step.by);
    const { dueMs } = this.#side;
    switch (step.do) {
      case "submit": {
        const submissions = step.entries.map((entry) => this.#submission(entry));
        return () => engine.submit(submissions);
      }
      case "claim":
        return (expected) => this.#claim(engine, step, scattered.has(step.queue), expected);
      case "settle": {
        const settlements = this.#granted(engine, step.entries).map(({ lease, run, ended, ending }) =>
          Object.assign(this.#ended(run, ended), { lease, ending: this.#ending(ending) }),
        );
        return async () => {
          const first = await engine.settle(settlements);
          return step.twice ? { first, second: await engine.settle(settlements) } : first;
        };
      }
      case "renew": {
        const renewals = this.#granted(engine, step.entries).map(({ lease, run, time, progress, ended }) =>
          Object.assign(
            this.#ended(run, ended),
            { lease, leaseMs: dueMs(time) },
            progress === undefined ? {} : { progress },
          ),
        );
        return async () => {
          const first = await engine.renew(renewals);
          return step.twice === true ? { first, second: await engine.renew(renewals) } : first;
        };
      }
      case "hold": {
        const { queue, key, lease } = step;
        const request = { queue: this.#queue(queue), key: keyName(key), worker: "holder", leaseMs: dueMs(lease) };
        return () => engine.hold({ ...request, signal: AbortSignal.abort() });
      }
      case "cancel": {
        const request = this.#item(step.queue, step.item);
        return () => engine.cancel(request);
      }
      case "find": {
        const request = this.#item(step.queue, step.item);
        return () => engine.find(request);
      }
      case "outcome": {
        const { id } = this.#item(step.queue, step.item);
        return (expected) => this.#outcome(engine, step.queue, id, expected);
      }
      case "pause": {
        const { queue, key, paused } = step;
        const request = { queue: this.#queue(queue), paused, ...(key === undefined ? {} : { key: keyName(key) }) };
        return () => engine.pause(request);
      }
      case "revive": {
        const { queue, items, action } = step;
        const ids = items?.map((item) => this.#item(queue, item).id);
        return () => engine.revive({ queue: this.#queue(queue), action, ...(ids === undefined ? {} : { ids }) });
      }
      case "keys": {
        const { queue, after, limit, leased } = step;
        const page = { queue: this.#queue(queue), limit, leased };
        return () => engine.keys(after === undefined ? page : { ...page, after: keyName(after) });
      }
      case "dead": {
        const { queue, after, limit } = step;
        const page = { queue: this.#queue(queue), limit };
        const last = after === undefined ? page : { ...page, after: this.#item(queue, after).id };
        return () => engine.dead(last);
      }
      case "queues":
        return () => Promise.all(this.#queues().map((queue) => engine.queues({ queue })));
      case "reopen":
        return async () => {
          const { handles, levels } = this.#side;
          const handle = await handles.reopen(step.by);
          for (const queue of this.#queues()) await handle.declare({ queue, levels });
          return undefined;
        };
      case "restart":
        return async () => {
          const { handles, levels } = this.#side;
          for (const handle of await handles.reopenAll())
            for (const queue of this.#queues()) await handle.declare({ queue, levels });
          return undefined;
        };
      case "wait":
        return async () => undefined;
    }
  }

  /** In the order of the steps, whichever was answered first. */
  #note(step: Step, result: unknown): void {
    if (step.do === "submit") {
      for (const [index, one] of (result as readonly port.SubmitResult[]).entries()) {
        const entry = step.entries[index];
        if (entry === undefined || !one.ok || one.accepted.duplicate) continue;
        const { id } = one.accepted;
        this.#idsOf(entry.queue).push(id);
        if (entry.keep === "none") this.#kept.delete(`${entry.queue} ${id}`);
        else this.#kept.add(`${entry.queue} ${id}`);
        this.#answers.nameItem(id);
      }
    } else if (step.do === "claim" || step.do === "hold") {
      const granted =
        step.do === "claim"
          ? (result as readonly port.Grant[]).map(({ lease, item, behind = [] }) => ({
              lease,
              items: [item, ...behind],
            }))
          : [{ lease: result as port.Lease | undefined, items: [] }];
      for (const { lease, items } of granted) {
        if (lease === undefined) continue;
        this.#leases.push({ lease, engine: this.#side.handles.at(step.by), run: items.map(({ id }) => id) });
        this.#answers.nameFence(lease);
      }
    }
  }

  /** As many as the model got; or whatever is ready now. */
  async #claim(
    engine: port.Engine,
    { queue: number, max: wanted, lease, items, stirs = false }: Extract<Step, { do: "claim" }>,
    isScattered: boolean,
    expected: unknown,
  ): Promise<readonly port.Grant[]> {
    const queue = this.#queue(number);
    const max = isScattered ? ALL : wanted;
    this.#claims += 1;
    // A name of its own: a worker that goes on with the key it just had may be served out of turn.
    const worker = `worker ${this.#claims}`;
    const request = {
      queue,
      worker,
      leaseMs: this.#side.dueMs(lease),
      patienceMs: PATIENCE_MS,
      ...(items === undefined ? {} : { items }),
    };
    const due = Array.isArray(expected) ? expected.length : 0;
    const grants: port.Grant[] = [];
    while (grants.length < due) {
      const more = await engine.claim({ ...request, max: max - grants.length, signal: AbortSignal.timeout(COMES_MS) });
      if (more.length === 0) break;
      grants.push(...more);
    }
    if (due === 0) {
      const enough = new AbortController();
      const claimed = engine.claim({ ...request, max, signal: enough.signal });
      // Any call that takes its turn behind the claim.
      await engine.queues({ queue });
      if (stirs && expected !== undefined) await wait(STIR_MS);
      enough.abort();
      grants.push(...(await claimed));
    }
    const certain = grants.map(withoutHint);
    return isScattered ? certain.toSorted((a, b) => (a.lease.key < b.lease.key ? -1 : 1)) : certain;
  }

  async #outcome(
    engine: port.Engine,
    number: number,
    id: string,
    expected: unknown,
  ): Promise<port.Outcome | undefined> {
    // Whether to wait for the end of an item that nobody will remember is left to the engine.
    if (!this.#kept.has(`${number} ${id}`)) return undefined;
    const request = { queue: this.#queue(number), id };
    if (expected !== undefined) return engine.outcome({ ...request, signal: AbortSignal.timeout(COMES_MS) });
    const enough = new AbortController();
    const outcome = engine.outcome({ ...request, signal: enough.signal });
    await engine.queues({ queue: request.queue });
    enough.abort();
    return outcome;
  }

  #submission(entry: Entry): port.Submission {
    const { id, mode, keyLimit, queueLimit, key } = entry;
    const { levels, ms, dueMs } = this.#side;
    const body = entry.bytes ? new Uint8Array([key, 0, 255]) : `work on ${key}`;
    return {
      queue: this.#queue(entry.queue),
      key: keyName(key),
      level: levels[entry.level] ?? "unknown",
      mode,
      keyLimit,
      queueLimit,
      payload: { type: entry.bytes ? "application/octet-stream" : "text/plain", body },
      delayMs: dueMs(entry.delay),
      keepMs: ms(entry.keep),
      ...(id === undefined ? {} : { id: `id ${id}` }),
      ...(entry.headers ? { headers: { trace: "1", ключ: "z\n" } } : {}),
    };
  }

  /** Of the items of a run before its last. */
  #ended(run: readonly string[], wishes: readonly EndedWish[] | undefined): { readonly ended?: port.EndedItem[] } {
    if (wishes === undefined) return {};
    const before = run.slice(0, -1);
    return {
      ended: before.slice(0, wishes.length).map((id, index) => ({ id, ending: this.#end(wishes[index]) })),
    };
  }

  #end(wish: EndedWish = { type: "done" }): port.EndedItem["ending"] {
    if (wish.type === "cancelled") return { type: "cancelled" };
    const { result, resultMissing } = wish;
    return {
      type: "done",
      ...(result === undefined ? {} : { result: { type: "text/plain", body: result } }),
      ...(resultMissing === undefined ? {} : { resultMissing }),
    };
  }

  #ending(wish: EndingWish): port.Ending {
    switch (wish.type) {
      case "done":
      case "cancelled":
        return this.#end(wish);
      case "retry":
        return {
          type: "retry",
          delayMs: this.#side.dueMs(wish.delay),
          place: wish.place,
          failure: { message: "not yet" },
        };
      case "dead":
        return { type: "dead", failure: { message: "never", code: "NEVER" } };
      case "release":
        return { type: wish.type };
    }
  }

  /** The leases that this handle was given so many leases ago: nobody else can settle them. */
  #granted<T extends { readonly lease: number }>(
    engine: port.Engine,
    entries: readonly T[],
  ): readonly (Omit<T, "lease"> & Pick<Granted, "lease" | "run">)[] {
    const own = this.#leases.filter((granted) => granted.engine === engine);
    return entries.flatMap((entry) => {
      const granted = own[own.length - 1 - (entry.lease % Math.max(1, own.length))];
      return granted === undefined ? [] : [{ ...entry, lease: granted.lease, run: granted.run }];
    });
  }

  #item(queue: number, ago: number): port.ItemRequest {
    const ids = this.#idsOf(queue);
    return { queue: this.#queue(queue), id: ids[ids.length - 1 - (ago % Math.max(1, ids.length))] ?? "nobody" };
  }

  #idsOf(number: number): string[] {
    let ids = this.#ids.get(number);
    if (ids === undefined) this.#ids.set(number, (ids = []));
    return ids;
  }

  #queueOf(step: Step): string {
    return "queue" in step ? this.#queue(step.queue) : "";
  }

  #queues(): readonly string[] {
    return Array.from({ length: QUEUES }, (_, number) => this.#queue(number));
  }

  #queue(number: number): string {
    return `${this.#side.prefix}-${number}`;
  }
}

/** The pages of a list, one after the other. */
async function pages<T>(
  page: (after: { readonly after?: string }) => Promise<readonly T[]>,
  nameOf: (one: T) => string,
): Promise<readonly T[]> {
  const all: T[] = [];
  for (;;) {
    const last = all.at(-1);
    const next = await page(last === undefined ? {} : { after: nameOf(last) });
    if (next.length === 0) return all;
    all.push(...next);
  }
}

function keyName(number: number): string {
  return KEYS[number % KEYS.length] ?? KEYS[0];
}

/** That more of a key waits is said by those engines that profit from being asked for it. */
function withoutHint({ lease, item, behind }: port.Grant): port.Grant {
  return behind === undefined ? { lease, item } : { lease, item, behind };
}
