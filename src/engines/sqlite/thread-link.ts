import { Worker, type WorkerOptions } from "node:worker_threads";
import { Closed, OutcomeUnknown } from "../../domain/errors.ts";
import { StoreFailure } from "./failure.ts";
import { Pulse } from "./pulse.ts";
import { THREAD_PROGRAM } from "./thread-program.ts";
import type { Call, FromThread, Kind, News, Replies, Reply, Requests, ThreadData, ToThread } from "./messages.ts";

interface Pending {
  resolve(value: Replies[Kind]): void;
  reject(error: Error): void;
}

/** Calls to the store's thread. All calls of one turn of the event loop travel as one message. */
export class ThreadLink {
  readonly #thread: Worker;
  readonly #pulse: Pulse;
  readonly #pending = new Map<number, Pending>();
  #outbox: Call[] = [];
  #lastCall = 0;
  #sendScheduled = false;
  #ended: Error | undefined;
  readonly #exited: Promise<void>;
  /** What a transaction has to tell. */
  onNews: (news: News) => void = () => undefined;
  /** Another process has found leases that ran out. */
  onLosses: () => void = () => undefined;

  private constructor(thread: Worker, pulse: Pulse) {
    this.#thread = thread;
    this.#pulse = pulse;
    this.#exited = new Promise((resolve) => thread.once("exit", () => resolve()));
    thread.on("message", (message: FromThread) => {
      pulse.beat();
      if (message.type === "replies") this.#receive(message.replies);
      else if (message.type === "alive?" && pulse.answer()) this.tell("look");
      else if (message.type === "news") this.onNews(message.news);
      else if (message.type === "losses") this.onLosses();
    });
    thread.on("error", (cause) => {
      this.#ended = new StoreFailure(
        "STORE_UNAVAILABLE",
        `The store's thread failed: ${String(cause)}. Connect again.`,
        { cause },
      );
      // What was sent may have been done.
      this.#rejectAll(new OutcomeUnknown("this call, because the store's thread failed", { cause }));
    });
    thread.once("exit", () => {
      this.#ended ??= new Closed();
      this.#rejectAll(this.#ended);
    });
  }

  static open(given: Omit<ThreadData, "pulse">): Promise<ThreadLink> {
    const pulse = new Pulse();
    const data: ThreadData = { ...given, pulse: pulse.shared };
    const thread = newThread({ workerData: data, name: "baton-sqlite" });
    return new Promise((resolve, reject) => {
      thread.once("error", reject);
      thread.once("message", (message: FromThread) => {
        thread.off("error", reject);
        if (message.type === "failed") {
          reject(new StoreFailure(message.failure.code, message.failure.message));
          return;
        }
        const link = new ThreadLink(thread, pulse);
        // Only calls under way keep the process alive.
        thread.unref();
        resolve(link);
      });
    });
  }

  call<K extends Kind>(kind: K, request: Requests[K]): Promise<Replies[K]> {
    return this.start(kind, request).reply;
  }

  /** A call that brings work enough for the thread to begin while the rest of this turn goes on. */
  callNow<K extends Kind>(kind: K, request: Requests[K]): Promise<Replies[K]> {
    const { reply } = this.start(kind, request);
    this.#send();
    return reply;
  }

  /** Like `call`, with the number by which the call can be abandoned. */
  start<K extends Kind>(
    kind: K,
    request: Requests[K],
  ): { readonly number: number; readonly reply: Promise<Replies[K]> } {
    if (this.#ended !== undefined) return { number: 0, reply: Promise.reject(this.#ended) };
    this.#lastCall += 1;
    const number = this.#lastCall;
    const reply = new Promise<Replies[K]>((resolve, reject) => {
      if (this.#pending.size === 0) this.#thread.ref();
      // The thread answers a call with what its kind has for a reply; the compiler cannot follow that through a message.
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion
      this.#pending.set(number, { resolve: resolve as Pending["resolve"], reject });
    });
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- kind and request belong together by the signature
    this.#outbox.push({ call: number, kind, request } as Call);
    if (!this.#sendScheduled) {
      this.#sendScheduled = true;
      setImmediate(() => {
        this.#sendScheduled = false;
        this.#send();
      });
    }
    return { number, reply };
  }

  /** Something that has no answer. Whether a carrier tells of what other processes do: otherwise the store looks by itself, as often as without one. */
  tell(message: Extract<ToThread, "look" | "hears" | "deaf" | "hear losses">): void {
    if (this.#ended === undefined) this.#post(message);
  }

  async close(): Promise<void> {
    if (this.#ended === undefined) {
      this.#send();
      this.#ended = new Closed();
      this.#thread.ref();
      this.#post("close");
    }
    await this.#exited;
  }

  #send(): void {
    if (this.#outbox.length === 0) return;
    const calls = this.#outbox;
    this.#outbox = [];
    this.#post({ calls });
  }

  #post(message: ToThread): void {
    this.#pulse.beat();
    this.#thread.postMessage(message);
  }

  #receive(replies: readonly Reply[]): void {
    for (const reply of replies) {
      const pending = this.#pending.get(reply.call);
      if (pending === undefined) continue;
      this.#pending.delete(reply.call);
      if ("failure" in reply) pending.reject(new StoreFailure(reply.failure.code, reply.failure.message));
      else pending.resolve(reply.value);
    }
    if (this.#pending.size === 0 && this.#ended === undefined) this.#thread.unref();
  }

  #rejectAll(error: Error): void {
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
  }
}

/**
 * In the package the thread's program is a text that the build has put together, because a bundler leaves no file that could be named. The
 * sources have none: there it is a file.
 */
function newThread(options: WorkerOptions): Worker {
  if (THREAD_PROGRAM !== undefined) return new Worker(THREAD_PROGRAM, { ...options, eval: true });
  // Written in one expression, bundlers would look for the file.
  const source = "./thread.ts";
  return new Worker(new URL(source, import.meta.url), options);
}
