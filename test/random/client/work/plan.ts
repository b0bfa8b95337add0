/** What happens in one run: options, and deeds that each draw from a seed of their own. */
import type { QueueOptions } from "../../../../src/domain/settings.ts";
import type { RetryOptions } from "../../../../src/domain/retry.ts";
import type { Random } from "../../../kit/random.ts";

export type DeedKind = "submit" | "cancel" | "pause" | "worker" | "stop" | "until empty" | "take" | "hold" | "outage";

export interface Deed {
  readonly at: number;
  readonly process: number;
  readonly kind: DeedKind;
  readonly seed: number;
}

export interface Plan {
  /** `calm`: the store answers, so that everything has its time and its count. */
  readonly isCalm: boolean;
  readonly processes: number;
  readonly seed: number;
  readonly queue: QueueOptions & { readonly lease: number };
  readonly deeds: readonly Deed[];
}

export const PAYLOAD_LIMIT = 200;
const LENGTH_MS = 15_000;

export function drawRetry(random: Random): RetryOptions {
  const attempts = random.between(1, 4);
  const place = random.pick(["keep", "keep", "yield"] as const);
  const waits = random.pick<RetryOptions>([
    { backoff: 0 },
    { backoff: 50, maxBackoff: 120 },
    { backoff: 400 },
    { maxBackoff: 300 },
    { delay: 250 },
  ]);
  return { attempts, place, ...waits };
}

export function drawPlan(random: Random): Plan {
  const isCalm = random.chance(0.6);
  const processes = random.between(1, 3);
  const queue = {
    mode: random.pick(["fifo", "fifo", "fifo", "latest", "strict"] as const),
    lease: random.pick([600, 1_000, 3_000]),
    retry: drawRetry(random),
    limits: { perKey: random.pick([3, 1_000]), perQueue: random.pick([8, 1_000]), payload: PAYLOAD_LIMIT },
    patience: random.pick([100, "1d"]),
    history: "1h",
    remember: "1h",
  };
  const deeds: Deed[] = [];
  const add = (kinds: readonly DeedKind[], count: number, withinMs = LENGTH_MS): void => {
    for (let left = count; left > 0; left -= 1) {
      deeds.push({
        at: Math.round(random.next() * withinMs),
        process: random.between(0, processes - 1),
        kind: random.pick(kinds),
        seed: random.between(0, 0x7fff_ffff),
      });
    }
  };
  add(["submit"], random.between(2, 16), random.pick([1_000, LENGTH_MS]));
  add(["worker"], random.between(1, 4), random.pick([500, LENGTH_MS]));
  add(
    random.pick([
      ["stop", "worker"],
      ["cancel"],
      ["take", "hold"],
      ["pause"],
      ["until empty"],
      ["stop", "cancel", "take", "hold", "until empty"],
    ]),
    random.between(0, 6),
  );
  if (!isCalm) add(["outage"], random.between(1, 4));
  return {
    isCalm,
    processes,
    seed: random.between(0, 0x7fff_ffff),
    queue,
    deeds: deeds.toSorted((a, b) => a.at - b.at),
  };
}

export function describePlan({ deeds, ...rest }: Plan): string {
  return [`  ${JSON.stringify(rest)}`, ...deeds.map((deed) => `  ${JSON.stringify(deed)}`)].join("\n");
}

/** What a handler does with an item, attempt by attempt. */
export interface Act {
  readonly end: "return" | "return nothing" | "return too much" | "return a function" | "throw" | "fatal" | "later";
  readonly lengthMs: number;
  /** It begins and ends in one go. */
  readonly isAtOnce: boolean;
  readonly heedsSignal: boolean;
  readonly progress: number | undefined;
}

export function drawAct(random: Random, isGood: boolean): Act {
  const good = ["return", "return", "return nothing", "return too much", "return a function"] as const;
  return {
    end: isGood ? random.pick(good) : random.pick(["throw", "throw", "throw", "fatal", "later"]),
    lengthMs: random.pick([0, 10, 200, 1_500, 4_000]) * random.next(),
    isAtOnce: random.chance(0.2),
    heedsSignal: random.chance(0.7),
    progress: random.chance(0.3) ? random.next() : undefined,
  };
}

export const LATER_MS = 130;
