import { type Instant, instant } from "../../../../../src/domain/clock.ts";
import { BatonError, Stopping } from "../../../../../src/domain/errors.ts";
import { encodePayload } from "../../../../../src/domain/payload.ts";
import type { Grant, Renewal, RenewResult } from "../../../../../src/engine/port.ts";
import { memoryEngine } from "../../../../../src/engines/memory/index.ts";
import type { WorkerEvent } from "../../../../../src/worker/events.ts";
import { LeaseKeeper } from "../../../../../src/worker/lease-keeper.ts";
import { Outages } from "../../../../../src/worker/outages.ts";
import { HeldItem } from "../../../../../src/worker/held-item.ts";
import { type Finished, Run } from "../../../../../src/worker/run.ts";
import { ManualClock } from "../../../../manual-clock.ts";
import { ScriptedEngine } from "../../../../scripted-engine.ts";
import type { ModelSetting } from "./model.ts";

export const QUEUE = "cars";
const FENCE = 7;

export interface Asked {
  readonly keys: readonly string[];
  readonly since: Instant;
  readonly reply: PromiseWithResolvers<readonly RenewResult[]>;
}

/** A real keeper with a store whose every answer is given by a script. */
export class KeeperStage {
  readonly clock: ManualClock = new ManualClock();
  readonly keeper: LeaseKeeper;
  /** By the name of their item. */
  readonly runs: Map<string, HeldItem> = new Map();
  /** The item that was under the lease of a key last. */
  readonly #names = new Map<string, string>();
  readonly story: string[] = [];
  /** Renewals that have no answer yet. */
  readonly asked: Asked[] = [];
  readonly stalls: { readonly lateMs: number; readonly keys: readonly string[] }[] = [];
  readonly #leaseMs: number;

  constructor({ leaseMs, timeoutMs, chance }: ModelSetting) {
    const { clock } = this;
    this.#leaseMs = leaseMs;
    const engine = new ScriptedEngine(memoryEngine({ clock }));
    engine.onRenew = (renewals) => this.#ask(renewals);
    const tell = (what: string): void => void this.story.push(`${clock.monotonic()} ${what}`);
    const emit = (event: WorkerEvent): void => {
      if (event.type === "stalled") this.stalls.push({ ...event, keys: event.keys.map((key) => this.#nameOf(key)) });
      else if (event.type === "lost") tell(`lost ${event.item.id} ${event.why}`);
      else if (event.type === "cancelling") tell(`cancelling ${event.item.id}`);
      else tell(event.type);
    };
    // Its own clock stands still: all timers of the other one are the keeper's.
    const outages = new (class extends Outages {
      override worked(doing: string): void {
        tell(`worked ${doing}`);
      }
      override failed(doing: string): void {
        tell(`failed ${doing}`);
      }
    })(new ManualClock(), emit);
    const reported = (finished: readonly Finished[]): void =>
      tell(`reported ${finished.map(({ item }) => item.id).join()}`);
    const parts = { engine, clock, emit, outages, random: () => chance, reported };
    this.keeper = new LeaseKeeper(parts, leaseMs, timeoutMs);
  }

  /** @param behind how many items the lease of each covers beside the first */
  add(keys: readonly string[], agoMs: number, behind: number): void {
    const { monotonic, wall } = instant(this.clock);
    const since = { monotonic: monotonic - agoMs, wall: wall - agoMs };
    const runs = keys.map((key) => this.#run(key, since, behind));
    this.keeper.add(...runs);
  }

  /** The item is done: as a worker goes on with the next. Its name, or undefined when there is none that may begin. */
  next(name: string): string | undefined {
    const before = this.runs.get(name);
    if (before === undefined) return undefined;
    const { run } = before;
    const item = run?.next(before.grant.item, { type: "done" }, this.clock.monotonic());
    if (item === undefined) return undefined;
    this.keeper.remove(before);
    const held = this.#hold({ lease: before.grant.lease, item }, run);
    this.keeper.add(held);
    this.keeper.began(held);
    this.keeper.reportInTime(held);
    return item.id;
  }

  doubt(key: string, isRight: boolean): void {
    const lease = this.runs.get(key)?.grant.lease;
    if (lease !== undefined) this.keeper.doubt({ ...lease, fence: isRight ? FENCE : FENCE + 1 });
  }

  fail(asked: Asked): void {
    asked.reply.reject(new BatonError("STORE_UNAVAILABLE", "No connection."));
  }

  abort(key: string): void {
    this.runs.get(key)?.abort(new Stopping());
  }

  #run(key: string, since: Instant, behind: number): HeldItem {
    const lease = { queue: QUEUE, key, fence: FENCE, since, handle: undefined };
    const payload = encodePayload(null);
    const item = {
      id: key,
      queue: QUEUE,
      key,
      level: "normal",
      payload,
      headers: undefined,
      submittedAt: 0,
      attempt: 1,
    };
    const others = Array.from({ length: behind }, (_, index) => ({ ...item, id: `${key}.${index + 2}` }));
    const grant = { lease, item, ...(behind === 0 ? {} : { behind: others }) };
    return this.#hold(grant, new Run(grant));
  }

  #hold({ lease, item }: Grant, run: Run | undefined): HeldItem {
    const noteProgress = (changed: HeldItem): void => this.keeper.noteProgress(changed);
    const held = new HeldItem({ lease, item }, this.#leaseMs, this.clock, noteProgress, run);
    this.runs.set(item.id, held);
    this.#names.set(lease.key, item.id);
    return held;
  }

  /** The item that is held under the lease of a key. */
  #nameOf(key: string): string {
    return this.#names.get(key) ?? key;
  }

  #ask(renewals: readonly Renewal[]): Promise<readonly RenewResult[]> {
    const keys = renewals.map(({ lease }) => this.#nameOf(lease.key));
    const ids = (ended: Renewal["ended"]): string =>
      ended === undefined ? "" : `[${ended.map(({ id }) => id).join("+")}]`;
    const what = renewals
      .map(({ progress, ended }, index) => `${keys[index] ?? ""}:${progress ?? "-"}${ids(ended)}`)
      .toSorted()
      .join();
    this.story.push(`${this.clock.monotonic()} renew ${what}`);
    const asked: Asked = { keys, since: instant(this.clock), reply: Promise.withResolvers() };
    this.asked.push(asked);
    return asked.reply.promise;
  }
}
