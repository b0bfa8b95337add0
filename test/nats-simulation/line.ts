import type { LineFaults, Passing, Way } from "../jetstream/faults.ts";
import type { Random } from "../kit/random.ts";

export interface LineRates {
  readonly slowestMs: number;
  /** Now and then one takes so long. */
  readonly delayMs: number;
  readonly delayed: number;
  readonly requestLost: number;
  readonly replyLost: number;
}

export const CALM_RATES: LineRates = { slowestMs: 0.5, delayMs: 0, delayed: 0, requestLost: 0, replyLost: 0 };

/** What a run does to one message of one process, and tells about it. */
export type Interfere = (way: Way, passing: Passing) => "loses" | "passes";

export function randomLine(
  random: Random,
  rates: () => LineRates,
  interfere: Interfere,
  tell: (kind: "request lost" | "reply lost" | "slow", subject: string) => void,
): LineFaults {
  return {
    delayMs: (_way, { subject }) => {
      const { slowestMs, delayMs, delayed } = rates();
      if (slowestMs === 0) return 0;
      if (delayed > 0 && random.chance(delayed)) {
        tell("slow", subject);
        return random.next() * delayMs;
      }
      return random.next() * slowestMs;
    },
    loses: (way, passing) => {
      if (interfere(way, passing) === "loses") return true;
      const { requestLost, replyLost } = rates();
      const rate = way === "to server" ? requestLost : replyLost;
      if (rate === 0 || !random.chance(rate)) return false;
      tell(way === "to server" ? "request lost" : "reply lost", passing.subject);
      return true;
    },
  };
}
