/** What happens in one run. Each deed draws from a seed of its own, so that leaving one out does not change the others. */
import type { Random } from "../../../kit/random.ts";

export type DeedKind =
  | "lock"
  | "with lock"
  | "session"
  | "each"
  | "campaign"
  | "lead"
  | "take away"
  | "pause"
  | "crash"
  | "outage"
  | "close";

export interface Deed {
  readonly at: number;
  readonly process: number;
  readonly kind: DeedKind;
  readonly seed: number;
}

export interface Plan {
  /** `calm`: nothing goes wrong, so that everything has its time. `hiccups`: outages that are too short to lose anything. */
  readonly kind: "calm" | "hiccups" | "taken away" | "troubled";
  readonly processes: number;
  readonly seed: number;
  readonly deeds: readonly Deed[];
}

/** By name: how many may hold it. */
export const LOCKS: ReadonlyMap<string, number> = new Map([
  ["one", 1],
  ["single", 1],
  ["pair", 2],
]);
export const LEASES_MS: readonly number[] = [1_000, 3_000];
/** Deeds begin within this time, and end a little later. */
const LENGTH_MS = 12_000;

export function drawPlan(random: Random): Plan {
  const kind = random.pick(["calm", "calm", "hiccups", "taken away", "troubled", "troubled"] as const);
  const processes = random.between(1, 3);
  const kinds = random.pick<readonly DeedKind[]>([
    ["lock"],
    ["lock", "with lock", "session"],
    ["session", "lock"],
    ["each"],
    ["campaign", "lead"],
    ["lock", "lock", "with lock", "session", "each", "campaign", "lead"],
  ]);
  const deeds: Deed[] = [];
  const add = (what: readonly DeedKind[], count: number): void => {
    for (let left = count; left > 0; left -= 1) {
      deeds.push({
        at: Math.round(random.next() * LENGTH_MS),
        process: random.between(0, processes - 1),
        kind: random.pick(what),
        seed: random.between(0, 0x7fff_ffff),
      });
    }
  };
  add(kinds, random.between(4, 16));
  if (random.chance(0.3)) add(["close"], 1);
  if (kind === "taken away") add(["take away"], random.between(1, 4));
  if (kind === "hiccups") add(["outage"], random.between(2, 8));
  if (kind === "troubled") add(["pause", "crash", "outage", "outage"], random.between(1, 4));
  return { kind, processes, seed: random.between(0, 0x7fff_ffff), deeds: deeds.toSorted((a, b) => a.at - b.at) };
}

export function describePlan({ kind, processes, seed, deeds }: Plan): string {
  const lines = deeds.map((deed) => `  ${JSON.stringify(deed)}`);
  return [`  ${kind}, ${processes} processes, network seed ${seed}`, ...lines].join("\n");
}
