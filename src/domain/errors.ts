/**
 * Every error that a user can meet. One base class; `code` is stable and is what programs compare.
 * A message says what happened, what it means for the work, and what to do.
 */
export type ErrorCode =
  | "INVALID_INPUT"
  | "KEY_BUSY"
  | "KEY_FULL"
  | "QUEUE_FULL"
  | "PARTLY_REFUSED"
  | "LEVELS_DIFFER"
  | "QUEUE_MISSING"
  | "QUEUE_NOT_EMPTY"
  | "LEASE_LOST"
  | "LOCK_BUSY"
  | "LOCK_LOST"
  | "SESSION_LOST"
  | "LOCKS_ONLY"
  | "CANCELLED"
  | "STOPPING"
  | "HANDLER_TIMEOUT"
  | "FATAL"
  | "RETRY_LATER"
  | "NOT_FOUND"
  | "OUTCOME_NOT_KEPT"
  | "OUTCOME_TIMEOUT"
  | "OUTCOME_UNKNOWN"
  | "STORE_UNAVAILABLE"
  | "STORE_FULL"
  | "STORE_CORRUPT"
  | "STORE_READ_ONLY"
  | "STORE_TOO_NEW"
  | "STORE_TOO_OLD"
  | "ENGINE_MISSING"
  | "NODE_TOO_OLD"
  | "CLOSED";

export class BatonError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.name = new.target.name;
  }
}

/** Waiting does not help: the program, or whoever runs the store, must change something first. */
const LASTING: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "INVALID_INPUT",
  "LEVELS_DIFFER",
  "LOCKS_ONLY",
  "STORE_CORRUPT",
  "STORE_TOO_NEW",
  "STORE_TOO_OLD",
  "ENGINE_MISSING",
  "CLOSED",
]);

/** Whether the same call would fail in the same way later. What is not known may pass. */
export function isLasting(error: unknown): boolean {
  return error instanceof BatonError && LASTING.has(error.code);
}

/** Whether no answer came from the store. */
export function isAway(error: unknown): boolean {
  return error instanceof BatonError && (error.code === "STORE_UNAVAILABLE" || error.code === "OUTCOME_UNKNOWN");
}

/** A value that the caller gave is not allowed. Nothing was done. */
export class InvalidInput extends BatonError {
  readonly field: string;
  readonly rule: string;
  readonly value: unknown;
  readonly #said: string | undefined;

  /** @param said a sentence in place of the usual one, where what was found is not the point */
  constructor(field: string, value: unknown, rule: string, said?: string) {
    super("INVALID_INPUT", `${said ?? `${field}: expected ${rule}; found ${show(value)}.`} Nothing was done.`);
    this.field = field;
    this.rule = rule;
    this.value = value;
    this.#said = said;
  }

  /** The same, with the place in a larger input before the field: `[3].level`. */
  at(place: string): InvalidInput {
    const said = this.#said === undefined ? undefined : `${place}: ${this.#said}`;
    return new InvalidInput(`${place}.${this.field}`, this.value, this.rule, said);
  }
}

/** Mode `strict`: the key has an item, or is held. The submission was refused. */
export class KeyBusy extends BatonError {
  readonly queue: string;
  readonly key: string;

  constructor(queue: string, key: string) {
    super(
      "KEY_BUSY",
      `Key ${show(key)} of queue ${show(queue)} is busy. The item was not accepted. ` +
        "Submit it again later, or use mode fifo (wait in line) or latest (replace what waits).",
    );
    this.queue = queue;
    this.key = key;
  }
}

/** Mode `fifo`: as many items wait for the key as the queue allows. */
export class KeyFull extends BatonError {
  readonly queue: string;
  readonly key: string;
  readonly limit: number;

  constructor(queue: string, key: string, limit: number) {
    super(
      "KEY_FULL",
      `Key ${show(key)} of queue ${show(queue)} already has ${limit} items waiting, which is its limit. ` +
        "The item was not accepted. Wait until some are done, or raise limits.perKey.",
    );
    this.queue = queue;
    this.key = key;
    this.limit = limit;
  }
}

export class QueueFull extends BatonError {
  readonly queue: string;
  readonly limit: number;

  constructor(queue: string, limit: number) {
    super(
      "QUEUE_FULL",
      `Queue ${show(queue)} already has ${limit} items waiting, which is its limit. ` +
        "The item was not accepted. Add workers, wait, or raise limits.perQueue.",
    );
    this.queue = queue;
    this.limit = limit;
  }
}

/** The queue exists with other levels. Their order decides what runs first, so they are never changed silently. */
export class LevelsDiffer extends BatonError {
  readonly queue: string;
  readonly stored: readonly string[];
  readonly wanted: readonly string[];

  constructor(queue: string, stored: readonly string[], wanted: readonly string[]) {
    super(
      "LEVELS_DIFFER",
      `Queue ${show(queue)} exists with levels ${stored.join(", ")}; you asked for ${wanted.join(", ")}. Nothing was changed. ` +
        "Use the stored levels (leave the option out), or another queue name.",
    );
    this.queue = queue;
    this.stored = stored;
    this.wanted = wanted;
  }
}

/** The right to work on the key has passed, or may pass any moment, to somebody else. Stop at once. */
export class LeaseLost extends BatonError {
  readonly queue: string;
  readonly key: string;
  readonly fence: number;

  constructor(queue: string, key: string, fence: number, why: string) {
    super(
      "LEASE_LOST",
      `The lease on key ${show(key)} of queue ${show(queue)} (fence ${fence}) is lost: ${why}. ` +
        "Another worker may have the key now. What you settle is refused; stop, and check the fence in your own store.",
    );
    this.queue = queue;
    this.key = key;
    this.fence = fence;
  }
}

/** The lock may have passed, or may pass any moment, to somebody else. Stop at once. */
export class LockLost extends BatonError {
  readonly lock: string;
  readonly fence: number;

  constructor(lock: string, fence: number, why: string) {
    super(
      "LOCK_LOST",
      `Lock ${show(lock)} (fence ${fence}) is lost: ${why}. Somebody else may hold it now. ` +
        "Stop, and let whatever you write to refuse a fence lower than one it has seen.",
    );
    this.lock = lock;
    this.fence = fence;
  }
}

/** The life that locks hang on is over, and all of them with it. */
export class SessionLost extends BatonError {
  readonly owner: string;

  constructor(owner: string, why: string) {
    super(
      "SESSION_LOST",
      `The session of ${show(owner)} is over: ${why}. Every lock under it is lost; others may hold them now. ` +
        "Stop what they protected, and open a new session.",
    );
    this.owner = owner;
  }
}

/** The queue was never declared over this connection, or somebody has deleted it since. */
export class QueueMissing extends BatonError {
  readonly queue: string;

  constructor(queue: string) {
    super(
      "QUEUE_MISSING",
      `Queue ${show(queue)} is not in the store: it was deleted, or never declared. Nothing was done. The next submission makes it anew.`,
    );
    this.queue = queue;
  }
}

/** What keeps a queue from being deleted. */
export interface QueueContents {
  /** Items that wait, also those that are delayed or wait out a back-off. */
  readonly waiting: number;
  /** Keys in work, or held. */
  readonly leased: number;
  readonly dead: number;
}

/** Only an empty queue is deleted, unless somebody says that what is in it may be lost. */
export class QueueNotEmpty extends BatonError {
  readonly queue: string;
  readonly contents: QueueContents;

  constructor(queue: string, contents: QueueContents) {
    const { waiting, leased, dead } = contents;
    super(
      "QUEUE_NOT_EMPTY",
      `Queue ${show(queue)} is not empty: ${waiting} item(s) wait, ${leased} key(s) are in work or held, and ${dead} item(s) are dead letters. ` +
        "Nothing was deleted. Let workers finish it and drop its dead letters, or delete it with force, which loses all of them.",
    );
    this.queue = queue;
    this.contents = contents;
  }
}

/** The store's reply was lost: the change may or may not have happened. Repeating the call is safe. */
export class OutcomeUnknown extends BatonError {
  constructor(what: string, options?: ErrorOptions) {
    super(
      "OUTCOME_UNKNOWN",
      `No reply came to ${what}: it may or may not have happened. Doing it again is safe; ` +
        "a submission should carry an id, so that it is not accepted twice.",
      options,
    );
  }
}

/** Reason of a handler's signal: somebody cancelled the item. */
export class Cancelled extends BatonError {
  constructor(id: string) {
    super("CANCELLED", `Item ${show(id)} was cancelled while it ran. Stop; it will not be tried again.`);
  }
}

/** Reason of a handler's signal: the worker shuts down. The item goes back without counting the attempt. */
export class Stopping extends BatonError {
  constructor() {
    super("STOPPING", "The worker is stopping and its grace period is over. Stop; the item goes back to the queue.");
  }
}

/** Reason of a handler's signal: it ran longer than the worker allows. */
export class HandlerTimeout extends BatonError {
  constructor(timeoutMs: number) {
    super(
      "HANDLER_TIMEOUT",
      `The handler ran longer than its timeout of ${timeoutMs} ms. The lease is not renewed any more.`,
    );
  }
}

export class Closed extends BatonError {
  constructor(what = "This connection") {
    super("CLOSED", `${what} is closed. Nothing was done. Connect again.`);
  }
}

/** Throw this from a handler to send the item straight to the dead letters. */
export class Fatal extends BatonError {
  constructor(message: string, options?: ErrorOptions) {
    super("FATAL", message, options);
  }
}

/** Throw this from a handler to have the item again after a time of your choice. It counts as an attempt. */
export class RetryLater extends BatonError {
  readonly retryAfter: number | string;

  constructor(retryAfter: number | string, message = "The handler asked for a retry.", options?: ErrorOptions) {
    super("RETRY_LATER", message, options);
    this.retryAfter = retryAfter;
  }
}

/** What a value looks like in a message: short, on one line, with control characters escaped. */
export function show(value: unknown): string {
  if (value === undefined) return "nothing";
  // JSON knows no NaN and no Infinity: they would be shown as null.
  if (typeof value === "bigint" || typeof value === "symbol" || typeof value === "number") return String(value);
  if (typeof value === "function") return "a function";
  let text: string;
  try {
    // Undefined for an object whose `toJSON` says so, whatever the types say.
    text = JSON.stringify(value) ?? "a value that cannot be shown";
  } catch {
    return "a value that cannot be shown";
  }
  // JSON leaves DEL, C1 controls and line separators as they are; a terminal would obey them.
  text = text.replace(/[\u007f-\u009f\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
