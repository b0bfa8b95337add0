import type { Payload } from "../../domain/payload.ts";
import type { Item, Submission } from "../../engine/port.ts";
import type { StoredItem, StoredKey } from "./state.ts";

/** A new item, not yet in any phase that counts. What the caller may change later is copied. */
export function storedItem(
  submission: Submission,
  id: string,
  key: StoredKey,
  level: number,
  at: number,
  sequence: number,
): StoredItem {
  return {
    id,
    key,
    level,
    sequence,
    keepMs: submission.keepMs,
    submittedAt: at,
    payload: copyPayload(submission.payload),
    headers: submission.headers === undefined ? undefined : Object.freeze({ ...submission.headers }),
    phase: "delayed",
    attempts: 0,
    tried: [],
    dueAt: undefined,
    yielded: false,
    cancelRequested: false,
    losses: 0,
    covered: false,
    outcome: undefined,
    forgetAt: 0,
    watchers: undefined,
    slot: -1,
    ahead: undefined,
    behind: undefined,
  };
}

/** What a worker gets to see. Bytes are copied again: a handler that changes them must not change the next attempt. */
export function grantedItem(item: StoredItem, attempt: number = item.attempts): Item {
  const { queue } = item.key;
  return {
    id: item.id,
    queue: queue.name,
    key: item.key.name,
    level: levelName(item),
    payload: copyPayload(item.payload),
    headers: item.headers,
    submittedAt: item.submittedAt,
    attempt,
    ...(item.losses === 0 ? {} : { losses: item.losses }),
  };
}

export function copyPayload(payload: Payload): Payload {
  const { type, body } = payload;
  return { type, body: typeof body === "string" ? body : new Uint8Array(body) };
}

export function levelName(item: StoredItem): string {
  const name = item.key.queue.levels[item.level];
  if (name === undefined) throw new Error("An item is stored with a level that its queue does not have.");
  return name;
}
