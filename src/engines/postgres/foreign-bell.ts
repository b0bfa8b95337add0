import type { Wake } from "../../wake/wake.ts";
import { readSignal, readyIn, type Signal } from "./bell.ts";
import type { DeclaredQueue, Queues } from "./queues.ts";

export interface ForeignBellParts {
  readonly wake: Wake;
  readonly queues: Queues;
  /** The number of this handle. */
  readonly me: number;
  readonly idle: (queue: number) => number;
  readonly hear: (signal: Signal) => void;
  /** A lease with this fence may be lost. */
  readonly doubt: (fence: number) => void;
}

/**
 * Something else than NOTIFY carries the signals about queues. The functions in the database then say them in notices to whoever calls, and this
 * process passes them on when the statement is over, which is when they are true. What concerns locks, and what an application submits in a
 * transaction of its own, still comes by NOTIFY.
 */
export class ForeignBell {
  readonly #parts: ForeignBellParts;
  readonly #heard = new Set<number>();
  #said: string[] = [];

  constructor(parts: ForeignBellParts) {
    this.#parts = parts;
    // Another store that shares the carrier has the same small numbers, so this is no more than a reason to ask.
    parts.wake.onLost(({ queue, key, fence }) => {
      if (queue === "" && key === String(parts.me)) parts.doubt(fence);
    });
  }

  /** Somebody here waits for something of the queue. */
  listen({ id, name }: DeclaredQueue): void {
    if (this.#heard.has(id)) return;
    this.#heard.add(id);
    const { wake, me, idle, hear } = this.#parts;
    const work = (many = Infinity): void => hear({ type: "work", queue: id, handles: [me], many });
    wake.onWork(name, {
      idle: () => idle(id),
      wake: work,
      stir: () => {
        work();
        hear({ type: "hold", queue: id });
      },
    });
    wake.onEnded(name, () => hear({ type: "outcomes", queue: id, handles: undefined }));
  }

  /** A notice came, in the middle of a statement. */
  note(message: string): void {
    if (message.startsWith(MARK)) this.#said.push(message.slice(MARK.length));
  }

  /** A statement is over, and committed. */
  tell(): void {
    if (this.#said.length === 0) return;
    const said = this.#said;
    this.#said = [];
    for (const text of said) this.#tell(readSignal(text), text);
  }

  async close(): Promise<void> {
    await this.#parts.wake.close();
  }

  #tell(signal: Signal | undefined, text: string): void {
    const { wake, queues } = this.#parts;
    if (signal === undefined || signal.type === "cell") return;
    // Numbers of handles and fences are the store's, and mean the same to all who share it.
    if (signal.type === "lost") return wake.lost({ queue: "", key: String(signal.handle), fence: signal.fence });
    const name = queues.byId(signal.queue)?.name;
    if (name === undefined) return;
    if (signal.type === "hold") return wake.stir(name);
    if (signal.type === "outcomes") return wake.ended(name, undefined);
    const many = readyIn(text);
    if (many === undefined) wake.stir(name);
    else wake.work(name, many);
  }
}

/** Begins every notice of ours. */
const MARK = "baton ";
