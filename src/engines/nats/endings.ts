/** How leases end, as pure functions: what becomes of the item that ran, of those of its run that ended before it, and of those behind it. */
import { addAttempt, attemptOf, isVain, lostAttempt, withAttempts } from "../../engine/attempts.ts";
import type { AttemptReport, EndedItem, Ending, Outcome } from "../../engine/port.ts";
import { EMPTY_PAYLOAD } from "../../domain/payload.ts";
import { itemId } from "./receipts.ts";
import { isBig } from "./rules.ts";
import type { KeyItem, KeyState, StateLease, Todo } from "./state.ts";

/** What is left of a running or held key when its lease ends so. The caller lets `free` or `start` go on with it. */
export interface Ended {
  readonly items: readonly KeyItem[];
  readonly todo: readonly Todo[];
  readonly alone: number;
}

/** `unused`: nobody has begun the item, and so there is nothing to be said about this attempt. `void`: it is not to run, and nothing is said of it. */
export type LeaseEnding = Ending | { readonly type: "unused" | "void" };

/** What its holder says of a lease: these items of its run ended, and then this one did. */
export interface Report {
  readonly ended?: readonly EndedItem[];
  readonly ending: LeaseEnding;
}

export function end(key: string, state: KeyState, { ended: before = [], ending }: Report, now: number): Ended {
  const { count, todo } = endBefore(key, state, before, now);
  const [first, ...behind] = state.items.slice(count);
  const { kind, lease } = state;
  if (kind !== "running" || lease === undefined || first === undefined)
    return { items: state.items, todo: [], alone: state.alone };
  const isBack = ending.type === "release" || ending.type === "unused";
  const alone = Math.max(0, state.alone - count - (isBack ? 0 : 1));
  // An item that was counted by this very report, and was not begun, goes back as if nothing had been.
  const isBegun = count === 0 || ending.type !== "release";
  const back = uncover(isBegun ? behind : [first, ...behind], lease, now);
  if (!isBegun) return { items: back.items, todo: [...todo, ...back.todo], alone };
  const isKept = isBack || ending.type === "retry";
  const wanted = isKept && isToBeCancelled(first, count, lease) ? { type: "cancelled" as const } : ending;
  const last = conclude(counted(first, count), wanted, lease, now);
  return { items: [...last.items, ...back.items], todo: [...todo, ...last.todo, ...back.todo], alone };
}

/** Nobody settled in time: the item that ran is back in its place, unless it was to be cancelled, and so is what was covered. */
export function expire(state: KeyState, now: number): Ended {
  const [item, ...behind] = state.items;
  const { kind, lease } = state;
  if (kind !== "running" || lease === undefined || item === undefined)
    return { items: state.items, todo: [], alone: state.alone };
  const back = uncover(behind, lease, now);
  const alone = Math.max(state.alone, lease.covered);
  if (lease.cancelRequested) return { items: back.items, todo: [...cancelled(item, now), ...back.todo], alone };
  const lost = noted(item, lostAttempt({ attempt: item.attempts, at: now, worker: lease.worker }));
  return { items: [{ ...lost, losses: item.losses + 1 }, ...back.items], todo: back.todo, alone };
}

/** The run goes on with one item, when those before it have ended: what is behind goes back. Undefined: it stands so already. */
export function narrow(key: string, state: KeyState, before: readonly EndedItem[], now: number): KeyState | undefined {
  const { count, todo } = endBefore(key, state, before, now);
  const [first, ...behind] = state.items.slice(count);
  const { kind, lease } = state;
  if (kind !== "running" || lease === undefined || first === undefined || lease.covered === 1) return undefined;
  const back = uncover(behind, lease, now);
  const cancelRequested = isToBeCancelled(first, count, lease);
  return {
    ...state,
    items: [counted(first, count), ...back.items],
    alone: Math.max(0, state.alone - count),
    lease: { ...lease, covered: 1, toCancel: [], cancelRequested },
    todo: [...todo, ...back.todo],
  };
}

/** Ends what ran before. What is not covered any more, or nobody is behind, was reported before. */
function endBefore(
  key: string,
  { items, lease }: KeyState,
  before: readonly EndedItem[],
  now: number,
): { readonly count: number; readonly todo: readonly Todo[] } {
  const todo: Todo[] = [];
  let count = 0;
  for (const { id, ending } of before) {
    const item = items[count];
    if (item === undefined || count + 1 >= (lease?.covered ?? 1) || itemId(item, key) !== id) continue;
    todo.push(...conclude(counted(item, count), ending, lease, now).todo);
    count += 1;
  }
  return { count, todo };
}

/** The attempt of the first item was counted when its lease began; those behind it are counted when it has ended. */
function counted(item: KeyItem, index: number): KeyItem {
  return index === 0 ? item : { ...item, attempts: item.attempts + 1 };
}

function isToBeCancelled({ unique }: KeyItem, index: number, { cancelRequested, toCancel }: StateLease): boolean {
  return index === 0 ? cancelRequested : toCancel.includes(unique);
}

/** What a lease covered and did not begin waits as before. A cancel that its worker never heard of is carried out. */
function uncover(items: readonly KeyItem[], { toCancel }: StateLease, now: number): Omit<Ended, "alone"> {
  if (toCancel.length === 0) return { items, todo: [] };
  const isOver = ({ unique }: KeyItem): boolean => toCancel.includes(unique);
  return {
    items: items.filter((item) => !isOver(item)),
    todo: items.filter(isOver).flatMap((item) => cancelled(item, now)),
  };
}

/** What becomes of an item that ran. */
function conclude(ran: KeyItem, ending: LeaseEnding, lease: StateLease | undefined, now: number): Omit<Ended, "alone"> {
  const over = { at: now, attempt: ran.attempts };
  const by = { ...over, worker: lease?.worker ?? "" };
  const item = isSaid(ending) && isVain(ending) ? noted(ran, attemptOf(ending, by)) : ran;
  switch (ending.type) {
    case "done":
      return {
        items: [],
        todo: ended(item, {
          state: "done",
          ...over,
          ...(ending.result === undefined ? {} : { result: ending.result }),
          ...(ending.resultMissing === undefined ? {} : { resultMissing: ending.resultMissing }),
        }),
      };
    case "cancelled":
      return { items: [], todo: cancelled(item, now) };
    case "dead":
      return { items: [], todo: [{ type: "dead", item, at: now, failure: ending.failure }] };
    case "void":
      return { items: [], todo: [] };
    case "release":
    case "unused":
      return { items: [{ ...item, attempts: item.attempts - 1 }], todo: [] };
    case "retry":
      if (ending.delayMs > 0 && ending.place === "yield")
        return { items: [], todo: [{ type: "later", item, dueAt: now + ending.delayMs }] };
      return { items: [{ ...item, dueAt: ending.delayMs > 0 ? now + ending.delayMs : undefined }], todo: [] };
  }
}

function isSaid(ending: LeaseEnding): ending is Ending {
  return ending.type !== "unused" && ending.type !== "void";
}

/** A message has little room beside a big payload: then only the last attempt is kept. */
function noted(item: KeyItem, attempt: AttemptReport): KeyItem {
  return { ...item, tried: addAttempt(isBig(item) ? [] : (item.tried ?? []), attempt) };
}

/** Nothing is written about items that nobody asked to remember. */
export function ended(item: KeyItem, outcome: Outcome): readonly Todo[] {
  return item.keepMs === 0
    ? []
    : [
        {
          type: "ended",
          item: { ...item, payload: EMPTY_PAYLOAD, headers: undefined, tried: undefined },
          outcome: { ...outcome, ...withAttempts(item.tried ?? []) },
        },
      ];
}

export function cancelled(item: KeyItem, at: number): readonly Todo[] {
  return ended(item, { state: "cancelled", at, attempt: item.attempts });
}
