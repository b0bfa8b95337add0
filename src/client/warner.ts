import type { Clock } from "../domain/clock.ts";
import type { Item } from "../engine/port.ts";
import { type BatonEvent, describeWarning } from "./events.ts";

/** After a warning of an item, more of its kind are gathered for so long, and for longer the longer they keep coming. */
const FIRST_GATHERING_MS = 1_000;
const LONGEST_GATHERING_MS = 60_000;
const KEYS_SHOWN = 3;

interface Gathering {
  readonly keys: string[];
  ms: number;
}

export type Warn = (message: string, options: { readonly type: string; readonly code: string }) => void;

/**
 * Tells people the few events that mean a risk. One outage or one blocked event loop may cost every handler of a worker its lease: the first is told
 * at once, and of those that follow, how many they were. What a handler returns that cannot be kept is said once for each queue.
 */
export function warner(clock: Clock, warn: Warn): (event: BatonEvent) => void {
  const toldOf = new Set<string>();
  const gatherings = new Map<string, Gathering>();
  const gather = (code: string, gathering: Gathering): void => {
    clock.setTimer(gathering.ms, () => {
      const { keys, ms } = gathering;
      if (keys.length === 0) return void gatherings.delete(code);
      const shown = keys.slice(0, KEYS_SHOWN).join(", ");
      warn(
        `The same of ${keys.length} more item(s) within ${ms / 1_000} s (keys ${shown}${keys.length > KEYS_SHOWN ? ", …" : ""}).`,
        {
          type: "BatonWarning",
          code,
        },
      );
      const longer = { keys: [], ms: Math.min(ms * 2, LONGEST_GATHERING_MS) };
      gatherings.set(code, longer);
      gather(code, longer);
    });
  };
  return (event) => {
    const message = describeWarning(event);
    if (message === undefined) return;
    const code = `BATON_${event.type.toUpperCase().replaceAll("-", "_")}`;
    const item = itemOf(event);
    if (item === undefined) return warn(message, { type: "BatonWarning", code });
    if (event.type === "result-not-kept") {
      if (toldOf.has(item.queue)) return;
      toldOf.add(item.queue);
      const once = "This is said once for each queue; onEvent hears of each item.";
      return warn(`${message} ${once}`, { type: "BatonWarning", code });
    }
    const known = gatherings.get(code);
    if (known !== undefined) return void known.keys.push(item.key);
    warn(message, { type: "BatonWarning", code });
    const first = { keys: [], ms: FIRST_GATHERING_MS };
    gatherings.set(code, first);
    gather(code, first);
  };
}

function itemOf(event: BatonEvent): Item | undefined {
  return "item" in event ? event.item : undefined;
}
