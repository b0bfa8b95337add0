/** What operators do: cancel, pause, bring dead letters back. */
import { withAttempts } from "../../engine/attempts.ts";
import { OutcomeUnknown } from "../../domain/errors.ts";
import type { CancelResult, ReviveRequest } from "../../engine/port.ts";
import { cancelled } from "./endings.ts";
import { tokenOf } from "./key-token.ts";
import type { KeyStore } from "./key-store.ts";
import { locate } from "./locate.ts";
import { type DeadLetter, isClaimed, itemId, keyOfId } from "./receipts.ts";
import { STAYS_ANNOUNCED } from "./rules.ts";
import { coveredOf, type KeyItem, type KeyState, type Seen, type Waiting } from "./state.ts";
import type { Submitter } from "./submit.ts";

const PAGE = 256;

export async function keyOfItem(store: KeyStore, id: string): Promise<string | undefined> {
  const given = keyOfId(id);
  if (given !== undefined) return given;
  const found = await store.receipts.find(id);
  return found === undefined ? undefined : tokenOf(found.receipt.key);
}

export async function cancel(store: KeyStore, id: string): Promise<CancelResult> {
  for (;;) {
    const place = await locate(store, id);
    switch (place.type) {
      case "nowhere":
        if (place.wasAccepted) throw new OutcomeUnknown("a cancellation");
        return "missing";
      case "dead":
      case "ended":
        return "ended";
      case "leaving":
        if (place.todo.type === "later") {
          await sayDone(store, place.key, place.seen);
          break;
        }
        await store.perform(place.key, place.seen.state);
        return "ended";
      case "delayed":
        if (await store.receipts.endDelayed(place, cancelled(place.item, store.clock.wall()))) return "cancelled";
        break;
      case "due":
        // Somebody may be taking it in at this moment, and could not be told: it is cancelled at its key.
        await store.bringDue(place.key);
        break;
      case "line": {
        const result = await cancelInLine(store, place.key, place.waiting);
        if (result !== undefined) return result;
        break;
      }
      case "state": {
        const result = await cancelInState(store, place.key, id);
        if (result !== undefined) return result;
      }
    }
  }
}

/** Does what a state has to leave elsewhere, and says so. Whoever wrote it may have died before: the state would say for ever that it is yet to be done. */
async function sayDone(store: KeyStore, key: string, { sequence }: Seen): Promise<void> {
  await store.change(key, (now) => {
    if (now.sequence !== sequence) return undefined;
    return { ...now.state, announced: now.state.kind === "ready" ? STAYS_ANNOUNCED : 0 };
  });
}

function withoutCancelled(store: KeyStore, state: KeyState, item: KeyItem): KeyState {
  const todo = [...state.todo, ...cancelled(item, store.clock.wall())];
  return { ...state, items: state.items.filter((one) => one !== item), todo };
}

/** The state says that it is cut, in one write: whoever has the key either took it before, or never will. */
async function cancelInLine(
  store: KeyStore,
  key: string,
  { sequence, item }: Waiting,
): Promise<CancelResult | undefined> {
  const written = await store.change(key, ({ state }) => {
    const gone = state.kind === "idle" || (state.taken[item.level] ?? 0) >= sequence || state.cut.includes(sequence);
    if (gone) return undefined;
    const announced = state.kind === "ready" ? STAYS_ANNOUNCED : 0;
    return {
      ...state,
      announced,
      more: true,
      cut: [...state.cut, sequence],
      todo: [...state.todo, ...cancelled(item, store.clock.wall())],
    };
  });
  return written === undefined ? undefined : "cancelled";
}

async function cancelInState(store: KeyStore, key: string, id: string): Promise<CancelResult | undefined> {
  let result: CancelResult | undefined;
  const isIt = (item: KeyItem): boolean => itemId(item, key) === id;
  await store.change(key, ({ state }) => {
    result = undefined;
    const index = state.items.findIndex(isIt);
    const item = state.items[index];
    if (item === undefined) return undefined;
    const { lease } = state;
    if (lease === undefined) return undefined;
    if (index < coveredOf(state)) {
      result = "requested";
      const { toCancel } = lease;
      if (index === 0) return { ...state, lease: { ...lease, cancelRequested: true } };
      return {
        ...state,
        lease: { ...lease, toCancel: [...toCancel.filter((one) => one !== item.unique), item.unique] },
      };
    }
    result = "cancelled";
    return withoutCancelled(store, state, item);
  });
  if (result !== undefined) return result;
  // Nobody has the key: it has to look for its next item.
  const written = await store.letGo(key, ({ state }) => {
    const item = state.items.find(isIt);
    if (item === undefined || state.lease !== undefined) return undefined;
    return withoutCancelled(store, state, item);
  });
  return written === undefined ? undefined : "cancelled";
}

export async function pauseKey(store: KeyStore, name: string, paused: boolean): Promise<void> {
  const key = tokenOf(name);
  if (paused) {
    await store.change(key, ({ state }) => {
      if (state.paused) return undefined;
      return state.lease === undefined ? { ...state, kind: "parked", paused, more: true } : { ...state, paused };
    });
    return;
  }
  const kept = await store.change(key, ({ state }) =>
    state.paused && state.lease !== undefined ? { ...state, paused } : undefined,
  );
  if (kept !== undefined) return;
  await store.letGo(key, ({ state }) => (state.paused && state.lease === undefined ? { ...state, paused } : undefined));
}

export async function revive(store: KeyStore, submitter: Submitter, { ids, action }: ReviveRequest): Promise<number> {
  let count = 0;
  if (ids !== undefined) {
    for (const id of new Set(ids)) {
      const letter = await store.receipts.letter(id);
      if (letter !== undefined && (await reviveOne(store, submitter, letter, action))) count += 1;
    }
    return count;
  }
  for (let after = 0; ;) {
    const letters = await store.receipts.letters(after, PAGE);
    const last = letters.at(-1);
    if (last === undefined) return count;
    for (const letter of letters) if (await reviveOne(store, submitter, letter, action)) count += 1;
    after = last.sequence;
  }
}

async function reviveOne(
  store: KeyStore,
  submitter: Submitter,
  letter: DeadLetter,
  action: "retry" | "drop",
): Promise<boolean> {
  const { item, id, key: name, at, failure, sequence } = letter;
  const key = tokenOf(name);
  const now = store.clock.wall();
  if (isClaimed(letter, now)) return false;
  if (action === "drop") {
    if (!(await store.receipts.removeLetter(sequence))) return false;
    if (item.keepMs > 0)
      await store.receipts.conclude(
        id,
        name,
        item,
        { state: "dead", at, attempt: item.attempts, failure, ...withAttempts(item.tried ?? []) },
        { again: true },
      );
    return true;
  }
  // A new item under the old id: what was said of the old one can be said again by somebody who is late.
  const unique = store.nonce();
  const claimed = await store.receipts.claimLetter(letter, unique, now);
  if (claimed === undefined) return false;
  const revived = { ...item, id, unique, attempts: 0, losses: 0, place: 0, dueAt: undefined };
  if (item.keepMs > 0) await store.receipts.reopen(id, name, revived);
  await submitter.arrive(key, { item: revived, front: false });
  // It is not there any more if the item has died again meanwhile: that letter is a new one.
  await store.receipts.removeLetter(claimed);
  return true;
}

/** A back-off is over, or nearly: what waits on the key is weighed again. */
export async function lookAgain(store: KeyStore, key: string, atLeast = 0): Promise<void> {
  await store.letGo(key, ({ state }) => (state.kind === "parked" && !state.paused ? state : undefined), atLeast);
}
