import type { ModelItem, StoreModel } from "./store-model.ts";
import type { Findings } from "./violation.ts";

/** When an item is handed out: nobody on its key, and with endless patience nobody at all, may have had to go first. */
export function checkGrantOrder(
  model: StoreModel,
  findings: Findings,
  granted: ModelItem,
  at: number,
  endlessPatience: boolean,
): void {
  for (const other of granted.key.items) {
    if (other === granted || other.state === "running" || !goesFirst(other, granted)) continue;
    const says = `item ${granted.token} was handed out before item ${other.token}, which was ahead of it (${other.state})`;
    findings.add("G5 ordered", at, granted.key.name, says);
  }
  if (!endlessPatience) return;
  for (const key of model.keys.values()) {
    if (key === granted.key || key.paused || key.lease !== undefined) continue;
    for (const item of key.items) {
      if (item.level >= granted.level || item.due !== undefined || model.isBlocked(item)) continue;
      const says = `item ${granted.token} was handed out while the more urgent item ${item.token} of ${key.name} was ready`;
      findings.add("G8 urgent first", at, granted.key.name, says);
    }
  }
}

/** Only where it is certain: an item that waits for a time of its own may not have arrived yet. */
function goesFirst(other: ModelItem, granted: ModelItem): boolean {
  const arrived = !other.yielded && (!other.delayed || other.attempts > 0);
  if (!arrived || other.state === "delayed") return false;
  if (other.level !== granted.level) return other.level < granted.level;
  // One that was tried and kept its place is ahead of all that were not.
  if (other.attempts > 0 || other.state === "backing off") return !granted.yielded;
  return other.order < granted.order && !granted.delayed && !granted.yielded;
}
