import type { Untold, Wake } from "../../wake/wake.ts";
import type { Clock } from "../../domain/clock.ts";
import { readSignal, readyIn, type Signal } from "./bell.ts";
import type { DeclaredQueue, Queues } from "./queues.ts";

export interface ForeignBellParts {
  readonly wake: Wake;
  readonly clock: Clock;
  readonly queues: Queues;
  /** The number of this handle. */
  readonly me: number;
  readonly idle: (queue: number) => number;
  readonly hear: (signal: Signal) => void;
  /** A lease with this fence may be lost. */
  readonly doubt: (fence: number) => void;
  /** Tells by NOTIFY what the carrier did not take. Everybody listens to that, too. */
  readonly notify: (payloads: readonly string[]) => Promise<void>;
}

/** Those of this handle who wait for something of one queue. */
interface Listening {
  waiting: number;
  readonly leave: readonly (() => void)[];
}

/**
 * Something else than NOTIFY carries the signals about queues. The functions in the database then say them in notices to whoever calls, and this
 * process passes them on when the statement is over, which is when they are true. What concerns locks, and what an application submits in a
 * transaction of its own, still comes by NOTIFY.
 */
export class ForeignBell {
  readonly #parts: ForeignBellParts;
  readonly #listening = new Map<number, Listening>();
  readonly #notifying = new Set<Promise<void>>();
  /** By queue and the monotonic clock: until when somebody else knows that there are leases. */
  readonly #leasedUntil = new Map<number, number>();
  #leaveLost: (() => void) | undefined;
  #said: string[] = [];

  constructor(parts: ForeignBellParts) {
    this.#parts = parts;
    parts.wake.onUntold = (untold) => this.#notify(untold);
  }

  /** Whether what others tell is heard here. */
  get hears(): boolean {
    return this.#parts.wake.hears;
  }

  /** Listens while somebody here waits for something of the queue. */
  async while<T>(queue: DeclaredQueue, waiting: () => Promise<T>): Promise<T> {
    const listening = this.#listening.get(queue.id) ?? this.#listen(queue);
    listening.waiting += 1;
    try {
      return await waiting();
    } finally {
      listening.waiting -= 1;
      if (listening.waiting === 0) {
        this.#listening.delete(queue.id);
        for (const leave of listening.leave) leave();
      }
    }
  }

  /**
   * This handle has taken a lease that is shorter than others wait between two looks. Somebody else should know when it runs out; whoever does
   * asks for the next date then, and so on while there are leases. True: it was told now, and not within the length of the lease.
   */
  leased({ id, name }: DeclaredQueue, leaseMs: number): boolean {
    const { wake, clock } = this.#parts;
    const now = clock.monotonic();
    if (now < (this.#leasedUntil.get(id) ?? -Infinity)) return false;
    this.#leasedUntil.set(id, now + leaseMs);
    wake.elsewhere(name);
    return true;
  }

  /** Listens for lost leases while this handle has some. */
  hold(some: boolean): void {
    const { wake, me, doubt } = this.#parts;
    this.#leaveLost?.();
    this.#leaveLost = undefined;
    if (!some) return;
    // Another store that shares the carrier has the same small numbers, so this is no more than a reason to ask.
    this.#leaveLost = wake.onLost(({ queue, key, fence }) => {
      if (queue === "" && key === String(me)) doubt(fence);
    });
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

  /** What the carrier does not take in the end goes by NOTIFY, too. */
  async close(): Promise<void> {
    await this.#parts.wake.close();
    await Promise.all(this.#notifying);
  }

  #listen({ id, name }: DeclaredQueue): Listening {
    const { wake, me, idle, hear } = this.#parts;
    const work = (many = Infinity): void => hear({ type: "work", queue: id, handles: [me], many });
    const leaveWork = wake.onWork(name, {
      idle: () => idle(id),
      wake: work,
      stir: () => {
        work();
        hear({ type: "hold", queue: id });
      },
    });
    const leaveEnded = wake.onEnded(name, () => hear({ type: "outcomes", queue: id, handles: undefined }));
    const listening: Listening = { waiting: 0, leave: [leaveWork, leaveEnded] };
    this.#listening.set(id, listening);
    return listening;
  }

  #notify(untold: readonly Untold[]): void {
    const payloads = untold.flatMap((one) => {
      if (one.type === "lost") return one.queue === "" ? [`lost ${one.key} ${one.fence}`] : [];
      const id = this.#parts.queues.byName(one.queue)?.id;
      if (id === undefined) return [];
      // Those who wait to hold a key may be meant as well.
      return one.type === "ended" ? [`outcomes ${id}`] : [`work ${id}`, `hold ${id}`];
    });
    if (payloads.length > 0) this.#sendNotify(payloads);
  }

  #sendNotify(payloads: readonly string[]): void {
    const notifying: Promise<void> = this.#parts
      .notify(payloads)
      // They look by themselves.
      .catch(() => undefined)
      .finally(() => this.#notifying.delete(notifying));
    this.#notifying.add(notifying);
  }

  #tell(signal: Signal | undefined, text: string): void {
    const { wake, queues } = this.#parts;
    if (signal === undefined || signal.type === "cell") return;
    // Numbers of handles and fences are the store's, and mean the same to all who share it.
    if (signal.type === "lost") return wake.lost({ queue: "", key: String(signal.handle), fence: signal.fence });
    const name = queues.byId(signal.queue)?.name;
    // Whoever finds that something is due finds it in every queue. Carriers know queues by their names, and NOTIFY by their numbers.
    if (name === undefined) return this.#sendNotify([text]);
    if (signal.type === "hold") return wake.stir(name);
    if (signal.type === "outcomes") return wake.ended(name, undefined);
    const many = readyIn(text);
    if (many === undefined) wake.stir(name);
    else wake.work(name, many);
  }
}

/** Begins every notice of ours. */
const MARK = "baton ";
