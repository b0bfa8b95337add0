/** An item as it is accepted, and what its submitter hears of it. */
import type { Accepted, Submission, SubmitResult } from "../../engine/port.ts";
import type { KeyStore } from "./key-store.ts";
import { itemId, type Receipt } from "./receipts.ts";
import type { KeyItem } from "./state.ts";

const NONE: readonly string[] = [];

export function itemOf(
  { id, level, payload, headers, keepMs, mode }: Submission,
  store: KeyStore,
  levels: readonly string[],
): KeyItem {
  return {
    unique: store.nonce(),
    id,
    place: 0,
    level: levels.indexOf(level),
    attempts: 0,
    submittedAt: store.clock.wall(),
    payload,
    headers,
    keepMs,
    replaceable: mode === "latest",
    dueAt: undefined,
    tried: undefined,
    losses: 0,
  };
}

export function acceptedAs(
  key: string,
  name: string,
  item: KeyItem,
  levels: readonly string[],
  replaced: readonly string[] = NONE,
): SubmitResult {
  const accepted: Accepted = {
    id: itemId(item, key),
    key: name,
    level: levels[item.level] ?? "",
    at: item.submittedAt,
    duplicate: false,
    replaced,
  };
  return { ok: true, accepted };
}

export function duplicate(id: string, { key, level, at }: Receipt): SubmitResult {
  return { ok: true, accepted: { id, key, level, at, duplicate: true, replaced: [] } };
}
