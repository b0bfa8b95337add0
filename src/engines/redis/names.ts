/** The names of everything in Redis. Prefix and queue are letters, digits, `_` and `-`, so that the braces are what they seem. */
export interface QueueNames {
  /** In the order in which the program declares them. */
  readonly keys: readonly string[];
  readonly channel: string;
}

const PARTS = "keys names items links leases due delayed receipts expiries failures dead".split(" ");

export function queueTag(prefix: string, queue: string): string {
  return `{${prefix}:${queue}}`;
}

export function queueNames(prefix: string, queue: string, levels: number): QueueNames {
  const tag = queueTag(prefix, queue);
  const ready = Array.from({ length: levels }, (_, index) => `${tag}:ready:${index + 1}`);
  return { keys: [tag, ...PARTS.map((part) => `${tag}:${part}`), ...ready], channel: `${tag}:news` };
}

/** A set with the names of all queues. */
export function queuesKey(prefix: string): string {
  return `${prefix}:queues`;
}

/** A dot cannot be part of a queue's name: no queue has this tag. */
export function locksTag(prefix: string): string {
  return `{${prefix}:.locks}`;
}
