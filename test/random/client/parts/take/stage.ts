import { setImmediate as turn } from "node:timers/promises";
import type { BatonEvent } from "../../../../../src/client/events.ts";
import type { Shared } from "../../../../../src/client/shared.ts";
import { Taker } from "../../../../../src/client/take.ts";
import { BatonError } from "../../../../../src/domain/errors.ts";
import type * as port from "../../../../../src/engine/port.ts";
import { memoryEngine } from "../../../../../src/engines/memory/index.ts";
import { Outages } from "../../../../../src/worker/outages.ts";
import { ManualClock } from "../../../../manual-clock.ts";
import { PassThrough } from "../../../../pass-through.ts";

export const LEASE_MS = 3_000;
export const USABLE_MS = 2_500;

export type SettleMode = "at once" | "later" | "refused" | "away";
export type RenewMode = "kept" | "taken" | "away" | "cancelled";

export interface Claim {
  readonly request: port.ClaimRequest;
  readonly reply: PromiseWithResolvers<readonly port.Grant[]>;
}

/** A real taker, and a store whose every answer is given by a script. */
export class TakeStage extends PassThrough {
  readonly clock: ManualClock;
  readonly taker: Taker;
  readonly workers: Shared["workers"] = new Set();
  readonly claims: Claim[] = [];
  readonly problems: string[] = [];
  /** By key: what was told, and what the store was asked to do. */
  readonly events: Map<string, string[]> = new Map();
  readonly settled: Map<string, port.Ending[]> = new Map();
  readonly answers: Map<string, string> = new Map();
  /** By key: the number of the last answer, counted over all of them. */
  readonly answerNumbers: Map<string, number> = new Map();
  readonly unanswered: (() => void)[] = [];
  /** Those that may be renewed. */
  readonly kept: Set<string> = new Set();
  troubles = 0;
  settling: SettleMode = "at once";
  renewals: RenewMode = "kept";
  #answered = 0;

  constructor() {
    const clock = new ManualClock();
    super(memoryEngine({ clock }));
    this.clock = clock;
    const emit = (event: BatonEvent): void => this.#hear(event);
    const outages = new Outages(clock, emit);
    const { workers } = this;
    this.taker = new Taker({ engine: this, clock, random: () => 0.5, emit, outages, closed: false, workers }, LEASE_MS);
  }

  override claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const claim: Claim = { request, reply: Promise.withResolvers() };
    this.claims.push(claim);
    return claim.reply.promise;
  }

  override async renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    const since = { monotonic: this.clock.monotonic(), wall: this.clock.wall() };
    for (const { lease } of renewals)
      if (!this.kept.has(lease.key)) this.problems.push(`${lease.key} is renewed, and is nobody's`);
    const mode = this.renewals;
    await turn();
    if (mode === "away") throw new BatonError("STORE_UNAVAILABLE", "No.");
    // Every third one is cancelled in any case.
    return renewals.map(({ lease }) =>
      mode === "taken"
        ? { ok: false }
        : { ok: true, since, cancelRequested: mode === "cancelled" || Number(lease.key.slice(1)) % 3 === 0 },
    );
  }

  override async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    for (const { lease, ending } of settlements) {
      listOf(this.settled, lease.key).push(ending);
      this.answers.delete(lease.key);
    }
    if (this.settling === "later") await new Promise<void>((resolve) => this.unanswered.push(resolve));
    const mode = this.settling;
    const result = mode === "refused" ? "lost" : "settled";
    for (const { lease } of settlements) {
      this.answers.set(lease.key, mode === "away" ? "none" : result);
      this.answerNumbers.set(lease.key, (this.#answered += 1));
    }
    if (mode === "away") throw new BatonError("STORE_UNAVAILABLE", "No.");
    return settlements.map(() => result);
  }

  #hear(event: BatonEvent): void {
    if (event.type === "trouble" && event.doing === "giving an item back") this.troubles += 1;
    if (!("item" in event)) return;
    listOf(this.events, event.item.key).push("why" in event ? `lost ${event.why}` : event.type);
  }
}

export function listOf<V>(lists: Map<string, V[]>, key: string): V[] {
  const known = lists.get(key);
  if (known !== undefined) return known;
  const list: V[] = [];
  lists.set(key, list);
  return list;
}
