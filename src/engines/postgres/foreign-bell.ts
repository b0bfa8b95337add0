import type { Untold, Wake } from "../../wake/wake.ts";
import { channelOf } from "./schema.ts";
import { readSignal, readyIn, type Signal } from "./signals.ts";
import type { ServingHandle } from "./serving.ts";
import type { DeclaredQueue } from "./queues.ts";

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
  readonly #handle: ServingHandle;
  readonly #wake: Wake;
  readonly #hear: (signal: Signal) => void;
  readonly #listening = new Map<number, Listening>();
  readonly #notifying = new Set<Promise<unknown>>();
  /** By queue and the monotonic clock: until when somebody else knows that there are leases. */
  readonly #leasedUntil = new Map<number, number>();
  #leaveLost: (() => void) | undefined;
  #said: string[] = [];

  constructor(handle: ServingHandle, wake: Wake, hear: (signal: Signal) => void) {
    this.#handle = handle;
    this.#wake = wake;
    this.#hear = hear;
    wake.onUntold = (untold) => this.#notify(untold);
    handle.link.onNotice = (message) => {
      if (message.startsWith(MARK)) this.#said.push(message.slice(MARK.length));
    };
    handle.link.onDone = () => this.#passOn();
  }

  /** Whether what others tell is heard here. */
  get hears(): boolean {
    return this.#wake.hears;
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
    const { clock } = this.#handle;
    const now = clock.monotonic();
    if (now < (this.#leasedUntil.get(id) ?? -Infinity)) return false;
    this.#leasedUntil.set(id, now + leaseMs);
    this.#wake.elsewhere(name);
    return true;
  }

  /** Listens for lost leases while this handle has some. */
  hold(some: boolean): void {
    this.#leaveLost?.();
    this.#leaveLost = undefined;
    if (!some) return;
    // Another store that shares the carrier has the same small numbers, so this is no more than a reason to ask.
    this.#leaveLost = this.#wake.onLost(({ queue, key, fence }) => {
      if (queue === "" && key === String(this.#handle.me)) this.#handle.leases.doubt(fence);
    });
  }

  /** What the carrier does not take in the end goes by NOTIFY, too. */
  async close(): Promise<void> {
    await this.#wake.close();
    await Promise.all(this.#notifying);
  }

  #listen({ id, name }: DeclaredQueue): Listening {
    const work = (many = Infinity): void => this.#hear({ type: "work", queue: id, handles: [this.#handle.me], many });
    const leaveWork = this.#wake.onWork(name, {
      idle: () => this.#handle.leases.claims.get(id)?.size ?? 0,
      wake: work,
      stir: () => {
        work();
        this.#hear({ type: "hold", queue: id });
      },
    });
    const leaveEnded = this.#wake.onEnded(name, () => this.#hear({ type: "outcomes", queue: id, handles: undefined }));
    const listening: Listening = { waiting: 0, leave: [leaveWork, leaveEnded] };
    this.#listening.set(id, listening);
    return listening;
  }

  /** A statement is over, and committed. */
  #passOn(): void {
    if (this.#said.length === 0) return;
    const said = this.#said;
    this.#said = [];
    for (const text of said) this.#tell(readSignal(text), text);
  }

  #notify(untold: readonly Untold[]): void {
    const payloads = untold.flatMap((one) => {
      if (one.type === "lost") return one.queue === "" ? [`lost ${one.key} ${one.fence}`] : [];
      const id = this.#handle.queues.byName(one.queue)?.id;
      if (id === undefined) return [];
      // Those who wait to hold a key may be meant as well.
      return one.type === "ended" ? [`outcomes ${id}`] : [`work ${id}`, `hold ${id}`];
    });
    if (payloads.length > 0) this.#sendNotify(payloads);
  }

  #sendNotify(payloads: readonly string[]): void {
    const { link } = this.#handle;
    const text = "SELECT pg_notify($1, u.payload) FROM unnest($2::text[]) u(payload)";
    const notifying: Promise<unknown> = link
      .query("baton_notify", text, [channelOf(link.schema), [...payloads]])
      // They look by themselves.
      .catch(() => undefined)
      .finally(() => this.#notifying.delete(notifying));
    this.#notifying.add(notifying);
  }

  #tell(signal: Signal | undefined, text: string): void {
    const { queues } = this.#handle;
    const wake = this.#wake;
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
