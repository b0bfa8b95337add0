/** Those who listen to something of a queue. A queue to which nothing listens any more is forgotten: names come and go. */
export class ByQueue<Listener> {
  readonly #queues = new Map<string, Set<Listener>>();

  /** Queues that something listens to. */
  get size(): number {
    return this.#queues.size;
  }

  of(queue: string): Iterable<Listener> {
    return this.#queues.get(queue) ?? [];
  }

  *all(): Iterable<Listener> {
    for (const listeners of this.#queues.values()) yield* listeners;
  }

  /** Each listener is added once. Returns what takes it out again. */
  add(queue: string, listener: Listener): () => void {
    const listeners = this.#queues.get(queue) ?? new Set();
    this.#queues.set(queue, listeners);
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0 && this.#queues.get(queue) === listeners) this.#queues.delete(queue);
    };
  }
}
