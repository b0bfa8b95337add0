import { BatonError } from "../domain/errors.ts";
import { decodePayload } from "../domain/payload.ts";
import type { Item } from "../engine/port.ts";
import type { HeldLease } from "./held-item.ts";

/**
 * Does the work. What it returns is the item's result. Throwing means another attempt; an error with
 * `fatal: true` (or `Fatal`) means a dead letter, one with `retryAfter` (or `RetryLater`) sets the time.
 */
export type Handler<T> = (item: WorkItem<T>, lease: HeldLease) => unknown;

/** An item as its handler sees it. For a test of a handler, write one by hand. */
export interface WorkItem<T> {
  readonly id: string;
  readonly queue: string;
  readonly key: string;
  readonly level: string;
  /** 1 for the first. */
  readonly attempt: number;
  /** Milliseconds since the epoch, by the store's clock. */
  readonly submittedAt: number;
  readonly headers: Readonly<Record<string, string>> | undefined;
  /** The content type: `application/json` unless the submitter said otherwise. */
  readonly type: string;
  /** Decoded when first read: JSON to a value, text to a string, anything else to bytes. */
  readonly payload: T;
  /** As it was submitted, text or bytes, not decoded. */
  readonly body: string | Uint8Array;
}

/** An item that a store gave. */
export class GrantedItem<T> implements WorkItem<T> {
  readonly id: string;
  readonly queue: string;
  readonly key: string;
  readonly level: string;
  readonly attempt: number;
  readonly submittedAt: number;
  readonly headers: Readonly<Record<string, string>> | undefined;
  readonly #item: Item;
  #decoded: { readonly value: T } | undefined;

  constructor(item: Item) {
    this.id = item.id;
    this.queue = item.queue;
    this.key = item.key;
    this.level = item.level;
    this.attempt = item.attempt;
    this.submittedAt = item.submittedAt;
    this.headers = item.headers;
    this.#item = item;
    const { damage } = item;
    if (damage !== undefined) Object.defineProperty(this, "headers", { get: () => damaged(item, damage) });
  }

  get type(): string {
    return this.#item.payload.type;
  }

  get payload(): T {
    // The type is the submitter's promise; a store cannot check it.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    this.#decoded ??= { value: decodePayload(this.#item.payload) as T };
    return this.#decoded.value;
  }

  get body(): string | Uint8Array {
    return this.#item.payload.body;
  }
}

/** A handler that does not ask for the headers is none the worse for it. */
function damaged({ id, key, queue }: Item, damage: string): never {
  throw new BatonError(
    "STORE_CORRUPT",
    `The headers of item ${id} (key ${JSON.stringify(key)} of queue ${queue}) are damaged: somebody else wrote over them. ${damage} ` +
      "Other items are not concerned. Submit it again, and drop this one.",
  );
}
