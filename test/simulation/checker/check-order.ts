import type { ModelItem, StoreModel } from "./store-model.ts";
import type { Findings } from "./violation.ts";

/** When an item is handed out, nobody on its key may have had to go first, but those of its run that do. */
export function checkOrderOnKey(
  granted: ModelItem,
  before: readonly ModelItem[],
  at: number,
  findings: Findings,
): void {
  for (const other of granted.key.items) {
    if (other === granted || before.includes(other) || other.state === "running" || !goesFirst(other, granted))
      continue;
    const says = `item ${granted.token} was handed out before item ${other.token}, which was ahead of it (${other.state})`;
    findings.add("G5 ordered", at, granted.key.name, says);
  }
}

/** Items of other keys that were ready and are more urgent. */
export function moreUrgent(model: StoreModel, granted: ModelItem): ModelItem[] {
  const found: ModelItem[] = [];
  for (const key of model.keys.values()) {
    if (key === granted.key || key.paused || key.lease !== undefined) continue;
    for (const item of key.items) {
      if (item.level < granted.level && item.due === undefined && !model.isBlocked(item)) found.push(item);
    }
  }
  return found;
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
