import type { Clock } from "../../domain/clock.ts";
import type { Connection, Connections } from "./link.ts";

/** What is said between handles. Numbers of queues and handles are the store's. */
export type Signal =
  | {
      readonly type: "work";
      readonly queue: number;
      readonly handles: readonly number[] | undefined;
      /** Ready keys, where a foreign carrier counts them. Whoever is named by NOTIFY looks until he finds nothing. */
      readonly many?: number;
    }
  | { readonly type: "outcomes"; readonly queue: number; readonly handles: readonly number[] | undefined }
  | { readonly type: "hold"; readonly queue: number }
  | { readonly type: "lost"; readonly handle: number; readonly fence: number }
  | { readonly type: "cell"; readonly name: string };

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 5_000;

/** The connection that listens. It does nothing else, so that nobody is kept waiting by what another hears. */
export class Bell {
  readonly #connections: Connections;
  readonly #clock: Clock;
  readonly #channel: string;
  readonly #heard: (signal: Signal) => void;
  readonly #missed: () => void;
  #connection: Connection | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  readonly #closing = new AbortController();

  constructor(
    connections: Connections,
    clock: Clock,
    channel: string,
    heard: (signal: Signal) => void,
    missed: () => void,
  ) {
    this.#connections = connections;
    this.#clock = clock;
    this.#channel = channel;
    this.#heard = heard;
    this.#missed = missed;
  }

  /** Nobody hears anything meanwhile: whoever waits must look by himself more often. */
  get isDeaf(): boolean {
    return this.#connection === undefined;
  }

  /** Resolves when it listens; when it cannot, it goes on trying. */
  async listen(): Promise<void> {
    const { signal } = this.#closing;
    let made: Connection | undefined;
    const cutOff = (): void => made?.release(true);
    signal.addEventListener("abort", cutOff, { once: true });
    try {
      made = await this.#connections.connect(signal);
      signal.throwIfAborted();
      const { client } = made;
      const lost = (): void => this.#lost(made);
      client.on("error", lost);
      client.on("end", lost);
      client.on("notification", ({ payload }) => {
        const heard = readSignal(payload ?? "");
        if (heard !== undefined) this.#heard(heard);
      });
      await client.query(`LISTEN ${this.#channel}`);
      this.#connection = made;
      this.#pauseMs = FIRST_PAUSE_MS;
    } catch {
      // That nothing can be heard breaks nothing; that nothing can be done is said by the calls that try.
      made?.release(true);
      this.#later();
    } finally {
      signal.removeEventListener("abort", cutOff);
    }
  }

  close(): void {
    this.#closing.abort();
    this.#connection?.release(true);
    this.#connection = undefined;
  }

  #lost(connection: Connection | undefined): void {
    if (connection === undefined || this.#connection !== connection) return;
    this.#connection = undefined;
    connection.release(true);
    this.#later();
  }

  #later(): void {
    if (this.#closing.signal.aborted) return;
    this.#clock.setTimer(this.#pauseMs, () => {
      if (this.#closing.signal.aborted) return;
      void this.listen().then(() => {
        if (!this.isDeaf) this.#missed();
      });
    });
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
  }
}

/**
 * `work 3 17,18`, `outcomes 3 17`, `hold 3`, `lost 17 4711`, `cell lock/nightly`. Undefined: of a version that we do not know. How many keys are
 * ready, which may follow the handles, is for a foreign carrier: see `readyIn`.
 */
export function readSignal(payload: string): Signal | undefined {
  const space = payload.indexOf(" ");
  const type = payload.slice(0, space);
  const rest = payload.slice(space + 1);
  if (type === "cell") return { type, name: rest };
  const [first, second] = rest.split(" ");
  const number = Number(first);
  switch (type) {
    case "work":
    case "outcomes":
      return { type, queue: number, handles: second?.split(",").map(Number) };
    case "hold":
      return { type, queue: number };
    case "lost":
      return { type, handle: number, fence: Number(second) };
    default:
      return undefined;
  }
}

/** `work 3 17,18 5`: five keys. Undefined: nobody counted them. */
export function readyIn(payload: string): number | undefined {
  const many = Number(payload.split(" ")[3]);
  return many >= 0 ? many : undefined;
}
