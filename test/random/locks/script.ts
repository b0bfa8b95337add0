/** What one script does, step by step. Calls, sessions and handles go by numbers, so that a script with steps left out still makes sense. */
import type { Random } from "../../kit/random.ts";

export type Step =
  | { readonly do: "open"; readonly session: number; readonly handle: number; readonly expiry: "release" | "delete" }
  /** Of a session: what it holds is free, and its calls are over. */
  | { readonly do: "close"; readonly session: number }
  /** The same while a call has only just been made under it, which is over as well. */
  | {
      readonly do: "ask and close";
      readonly session: number;
      readonly lock: number;
      readonly how: "try" | "wait";
      readonly delayMs: number;
    }
  | { readonly do: "renew"; readonly session: number }
  | (Asking & { readonly do: "try" | "wait" })
  /** The signal of a call that waits fires. */
  | { readonly do: "give up"; readonly call: number }
  /** `retire`: for so long that no script sees its end, or for a moment that those who wait see the end of. */
  | { readonly do: "release"; readonly call: number; readonly retire: "no" | "none" | "moment" | "long" }
  /** One with a number of slots that the others have not agreed on. */
  | { readonly do: "disagree"; readonly session: number; readonly lock: number }
  /** Somebody takes the lock away by means of the store. */
  | { readonly do: "take away"; readonly lock: number }
  /** A holder vanishes, or one who stands in line; `call` waits behind it. */
  | (Asking & {
      readonly do: "vanish";
      readonly handle: number;
      readonly expiry: "release" | "delete";
      /** So long it gives signs of life before, which keep its delay after loss as well. */
      readonly livesLeases: number;
    })
  /** A holder vanishes, and all that happens is that somebody watches. */
  | {
      readonly do: "vanish unseen";
      readonly lock: number;
      readonly handle: number;
      readonly expiry: "release" | "delete";
    }
  /** Several ask at once, from all handles; each lets go at once, or a moment later. */
  | { readonly do: "storm"; readonly lock: number; readonly calls: number; readonly tries: number };

interface Asking {
  readonly call: number;
  readonly session: number;
  readonly lock: number;
  readonly data: string | undefined;
  readonly delayMs: number;
}

/** What a script costs: each who vanishes is waited for. */
export interface ScriptBounds {
  readonly handles: number;
  readonly steps: number;
  readonly mostVanish: number;
  /** Leases that one who vanishes may live before. */
  readonly mostLeases: number;
}

/** How many may hold the lock of this number. */
export const SLOTS: readonly number[] = [1, 2, 3];
const SESSIONS = 4;
const DATA = [undefined, "10.0.0.1", 'a "quoted" \u{1F512} text'];

export function drawScript(random: Random, { handles, steps, mostVanish, mostLeases }: ScriptBounds): readonly Step[] {
  const script: Step[] = [];
  const handle = (): number => random.between(0, handles - 1);
  const session = (): number => random.between(0, SESSIONS - 1);
  const lock = (): number => random.pick([0, 0, 0, 1, 1, 2]);
  const expiry = (): "release" | "delete" => random.pick(["release", "delete"]);
  const calls: number[] = [];
  const call = (): number => (random.chance(0.8) ? random.pick(calls.slice(-5)) : random.pick(calls));
  const ask = (delayMs = 0): Asking => {
    calls.push(calls.length);
    return { call: calls.length - 1, session: session(), lock: lock(), data: random.pick(DATA), delayMs };
  };
  for (let number = 0; number < SESSIONS; number += 1) {
    script.push({ do: "open", session: number, handle: number % handles, expiry: expiry() });
  }
  for (let vanished = 0; script.length < steps;) {
    const kind = random.between(0, 99);
    if (calls.length === 0 || kind < 26) script.push({ do: "wait", ...ask(random.pick([0, 0, 100])) });
    else if (kind < 40) script.push({ do: "try", ...ask() });
    else if (kind < 72) {
      const retire = random.pick(["no", "no", "no", "no", "no", "no", "none", "moment", "moment", "long"] as const);
      script.push({ do: "release", call: call(), retire });
    } else if (kind < 79) script.push({ do: "give up", call: call() });
    else if (kind < 81) script.push({ do: "close", session: session() });
    else if (kind < 83)
      script.push({
        do: "ask and close",
        session: session(),
        lock: lock(),
        how: random.pick(["try", "wait"]),
        delayMs: random.pick([0, 100, 200, 300]),
      });
    else if (kind < 86) script.push({ do: "renew", session: session() });
    else if (kind < 88) script.push({ do: "disagree", session: session(), lock: lock() });
    else if (kind < 91) script.push({ do: "take away", lock: lock() });
    else if (kind < 93)
      script.push({ do: "storm", lock: lock(), calls: random.between(2, 6), tries: random.between(0, 2) });
    else if (kind < 96) script.push({ do: "open", session: session(), handle: handle(), expiry: expiry() });
    else if (vanished < mostVanish) {
      vanished += 1;
      if (random.chance(0.3)) script.push({ do: "vanish unseen", lock: lock(), handle: handle(), expiry: expiry() });
      else {
        const livesLeases = random.pick([0, mostLeases]);
        script.push({ do: "vanish", ...ask(random.pick([0, 300])), handle: handle(), expiry: expiry(), livesLeases });
      }
    }
  }
  return script;
}

export function describeScript(script: readonly Step[]): string {
  return script.map((step) => `  ${JSON.stringify(step)}`).join("\n");
}
