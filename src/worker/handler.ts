import { decodePayload } from "../domain/payload.ts";
import type { Item } from "../engine/port.ts";
import type { HeldLease } from "./run.ts";

/**
 * Does the work. What it returns is the item's result. Throwing means another attempt; an error with
 * `fatal: true` (or `Fatal`) means a dead letter, one with `retryAfter` (or `RetryLater`) sets the time.
 */
export type Handler<T> = (item: WorkItem<T>, lease: HeldLease) => unknown;

/** An item as its handler sees it. */
export class WorkItem<T> {
  readonly id: string;
  readonly queue: string;
  readonly key: string;
  readonly level: string;
  /** 1 for the first. */
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
  }

  /** The content type: `application/json` unless the submitter said otherwise. */
  get type(): string {
    return this.#item.payload.type;
  }

  /** Decoded when first read: JSON to a value, text to a string, anything else to bytes. */
  get payload(): T {
    // The type is the submitter's promise; a store cannot check it.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    this.#decoded ??= { value: decodePayload(this.#item.payload) as T };
    return this.#decoded.value;
  }

  /** As it was submitted, text or bytes, not decoded. */
  get body(): string | Uint8Array {
    return this.#item.payload.body;
  }
}
