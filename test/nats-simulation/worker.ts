/** A worker without mercy: claims, renews or forgets to, settles in time or much too late, and writes down every answer. */
import { elapsedMs } from "../../src/domain/clock.ts";
import { BatonError, OutcomeUnknown } from "../../src/domain/errors.ts";
import type { EndedItem, Ending, Grant, Item, Lease, NextRequest, SettleResult } from "../../src/engine/port.ts";
import { bodyText } from "../../src/domain/payload.ts";
import type { RunEnding } from "./history.ts";
import type { ItemPlan } from "./plan.ts";
import { type NatsProcess, QUEUE } from "./process.ts";
import type { Stage } from "./stage.ts";

const FAILURE = { message: "planned" };
/** Of a renewal's way: so long before an item ends it may begin. */
const MEANWHILE_MS = 5;
/** So long after the claim was sent a further item of its run may begin. */
const RUN_MS = 50;

/** One that ended before the one that runs. */
type EndedBefore = EndedItem & RunEnding;

/** What is to be said of the item that runs, and of those before it. */
interface Report {
  readonly token?: number;
  readonly ended: readonly EndedBefore[];
  readonly ending: Ending;
  readonly next?: NextRequest;
}

export class SimulatedWorker {
  readonly #stage: Stage;
  readonly #process: NatsProcess;
  readonly #slots: number;
  readonly #name: string;
  #free: (() => void) | undefined;
  #used = 0;

  constructor(stage: Stage, process: NatsProcess, slots: number) {
    this.#stage = stage;
    this.#process = process;
    this.#slots = slots;
    this.#name = `w-${process.name}`;
  }

  async run(): Promise<void> {
    const { engine, random, clock } = this.#process;
    for (;;) {
      while (this.#used >= this.#slots) {
        await new Promise<void>((resolve) => {
          this.#free = resolve;
        });
      }
      const giveUp = new AbortController();
      const timer = random.chance(0.2)
        ? clock.setTimer(random.next() * this.#stage.plan.leaseMs, () => giveUp.abort())
        : undefined;
      const grants = await engine.claim({
        queue: QUEUE,
        worker: this.#name,
        max: this.#slots - this.#used,
        leaseMs: this.#stage.plan.leaseMs,
        patienceMs: 60_000,
        signal: giveUp.signal,
        ...(this.#stage.plan.runs > 1 ? { items: this.#stage.plan.runs } : {}),
      });
      timer?.cancel();
      for (const grant of grants) this.#begin(grant);
    }
  }

  #begin(grant: Grant): void {
    this.#used += 1;
    this.#process.busy += 1;
    const { lease, item } = grant;
    const token = tokenOf(item);
    const number = this.#stage.granted(this.#process, lease, { token, id: item.id, attempt: item.attempt });
    const over = (): void => {
      this.#used -= 1;
      this.#process.busy -= 1;
      this.#free?.();
    };
    this.#stage.begin(this.#work(number, grant).finally(over));
  }

  /** One item of the run after the other. */
  async #work(number: number, { lease, item: first, behind = [] }: Grant): Promise<void> {
    const { clock, random } = this.#process;
    const ended: EndedBefore[] = [];
    const rest = [...behind];
    let since: Lease["since"] | undefined = lease.since;
    for (let item = first; ;) {
      const token = tokenOf(item);
      const { attempt } = item;
      const handled = await this.#handle(number, lease, since, this.#stage.planOf(token), attempt, ended, rest);
      if (handled === undefined) return;
      const { ending } = handled;
      ({ since } = handled);
      const next = rest.shift();
      const mayGoOn = ending.type === "done" || ending.type === "cancelled";
      if (next === undefined || !mayGoOn || elapsedMs(clock, lease.since) >= RUN_MS)
        return await this.#settle(number, lease, { token, ended, ending });
      ended.push({ id: item.id, ending, token, how: ending.type });
      // It was not begun after all.
      if (random.chance(0.1))
        return await this.#settle(number, lease, { token: tokenOf(next), ended, ending: { type: "release" } });
      const begun = { token: tokenOf(next), id: next.id, attempt: next.attempt };
      this.#stage.log({ type: "begin", lease: number, key: lease.key, before: token, ...begun });
      item = next;
    }
  }

  /** How the item ended, and since when its lease counts then. Undefined: nothing is said of it. */
  async #handle(
    number: number,
    lease: Lease,
    from: Lease["since"],
    plan: ItemPlan,
    attempt: number,
    ended: readonly EndedBefore[],
    rest: Item[],
  ): Promise<{ readonly ending: Ending; readonly since: Lease["since"] } | undefined> {
    const { clock, random } = this.#process;
    const { leaseMs } = this.#stage.plan;
    const careless = !this.#stage.calm && random.chance(this.#stage.plan.careless);
    let left = (this.#stage.calm ? Math.min(plan.leases, 0.1) : plan.leases) * leaseMs * (0.5 + random.next());
    let since = from;
    let cancelled = false;
    while (left > 0) {
      const step = Math.min(left, leaseMs / 3);
      await this.#process.sleep(step);
      left -= step;
      if (careless) continue;
      if (elapsedMs(clock, since) > leaseMs * 0.9) return undefined;
      if (left > 0) {
        const tells = ended.length + rest.length > 0 && random.chance(0.7);
        // What is behind it goes back.
        if (tells) rest.length = 0;
        const renewed = await this.#renew(number, lease, tells ? ended : undefined);
        if (renewed === "lost") return undefined;
        if (renewed !== "unknown") {
          ({ since } = renewed);
          cancelled ||= renewed.cancelRequested && (tells || ended.length === 0);
        }
      }
    }
    if (!careless && elapsedMs(clock, since) > leaseMs * 0.9) return undefined;
    if (this.#stage.plan.plain && !careless && random.chance(0.5)) await this.#renewMeanwhile(lease);
    const ending = endingOf(plan, attempt, !this.#stage.calm && random.chance(0.5));
    return { ending: cancelled ? { type: "cancelled" } : ending, since };
  }

  async #renew(
    number: number,
    lease: Lease,
    ended: readonly EndedBefore[] | undefined,
  ): Promise<"lost" | "unknown" | { readonly since: Lease["since"]; readonly cancelRequested: boolean }> {
    const { random } = this.#process;
    const { key } = lease;
    const call = this.#stage.nextCall();
    this.#stage.log({ type: "renew", call, lease: number, key, ended: ended ?? [] });
    try {
      const progress = random.chance(0.2) ? { progress: random.next() } : {};
      const told = ended === undefined ? {} : { ended };
      const { leaseMs } = this.#stage.plan;
      const [result] = await this.#process.engine.renew([{ lease, leaseMs, ...progress, ...told }]);
      if (result?.ok !== true) {
        this.#stage.log({ type: "renewed", call, lease: number, key, result: "lost" });
        return "lost";
      }
      const since = this.#process.trueTime(result.since.monotonic);
      const { cancelRequested } = result;
      this.#stage.log({ type: "renewed", call, lease: number, key, result: "ok", since, cancelRequested });
      return result;
    } catch (error) {
      this.#stage.log({ type: "renewed", call, lease: number, key, result: "unknown" });
      mustBeUnknown(error);
      return "unknown";
    }
  }

  /** A renewal that is under way when its item ends, as a worker's timer has it. Nobody hears of it. */
  async #renewMeanwhile(lease: Lease): Promise<void> {
    const { engine, random } = this.#process;
    engine.renew([{ lease, leaseMs: this.#stage.plan.leaseMs }]).catch(mustBeUnknown);
    await this.#process.sleep(random.next() * MEANWHILE_MS);
  }

  async #settle(number: number, lease: Lease, report: Report): Promise<void> {
    const { random, name: worker } = this.#process;
    const { leaseMs, runs: items } = this.#stage.plan;
    const { type } = report.ending;
    const mayGoOn = type !== "retry" && type !== "release" && random.chance(0.5);
    const wish = mayGoOn ? { ...report, next: { worker, leaseMs, items } } : report;
    for (let tries = random.between(1, 3); tries > 0; tries -= 1) {
      const result = await settleOnce(this.#stage, this.#process, number, lease, wish);
      if (result === "unknown") continue;
      if (typeof result === "object") this.#begin(result);
      return;
    }
  }
}

export async function settleOnce(
  stage: Stage,
  process: NatsProcess,
  number: number,
  lease: Lease,
  { token, ended, ending, next }: Report,
): Promise<SettleResult | "unknown"> {
  const { key } = lease;
  const call = stage.nextCall();
  const yields = ending.type === "retry" && ending.place === "yield";
  stage.log({ type: "settle", call, lease: number, key, token, ended, ending: ending.type, yields });
  try {
    const told = ended.length === 0 ? {} : { ended };
    const wish = next === undefined ? {} : { next };
    const [answer = "lost"] = await process.engine.settle([{ lease, ending, ...told, ...wish }]);
    stage.log({ type: "settled", call, lease: number, key, result: answer === "lost" ? "lost" : "settled" });
    return answer;
  } catch (error) {
    stage.log({ type: "settled", call, lease: number, key, result: "unknown" });
    mustBeUnknown(error);
    return "unknown";
  }
}

function tokenOf({ payload }: Item): number {
  return Number(bodyText(payload.body));
}

export function mustBeUnknown(error: unknown): void {
  if (!(error instanceof OutcomeUnknown)) throw error instanceof BatonError ? error : new Error(String(error));
}

function endingOf({ failures }: ItemPlan, attempt: number, mayRelease: boolean): Ending {
  const failing = failures[attempt - 1];
  switch (failing?.type) {
    case undefined:
      return { type: "done" };
    case "dead":
      return { type: "dead", failure: FAILURE };
    case "release":
      // The attempt is not counted: it must not be given back for ever.
      return { type: mayRelease ? "release" : "done" };
    case "retry":
      return { type: "retry", place: failing.place, delayMs: failing.delayMs, failure: FAILURE };
  }
}
