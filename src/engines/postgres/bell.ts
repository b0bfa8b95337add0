import type { Clock } from "../../domain/clock.ts";
import type { Connections } from "./link.ts";
import { PostgresWake } from "./wake.ts";

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

/** Listens on a connection that does nothing else, so that nobody is kept waiting by what another hears. */
export class Bell {
  readonly #wake: PostgresWake;
  readonly #clock: Clock;
  readonly #channel: string;
  readonly #heard: (signal: Signal) => void;
  #pauseMs = FIRST_PAUSE_MS;
  #isDeaf = true;
  #closed = false;

  constructor(connections: Connections, clock: Clock, channel: string, heard: (signal: Signal) => void) {
    this.#wake = new PostgresWake(connections);
    this.#clock = clock;
    this.#channel = channel;
    this.#heard = heard;
  }

  /** Nobody hears anything meanwhile: whoever waits must look by himself more often. */
  get isDeaf(): boolean {
    return this.#isDeaf;
  }

  /**
   * Resolves when it listens; when it cannot, it goes on trying: that nothing can be done is said by the calls that try.
   * @param missed called when it listens again, after it could not
   */
  async listen(missed: () => void): Promise<void> {
    const heard = (payload: string): void => {
      const signal = readSignal(payload);
      if (signal !== undefined) this.#heard(signal);
    };
    const again = (): void => {
      this.#isDeaf = false;
      missed();
    };
    const deaf = (): void => void (this.#isDeaf = true);
    try {
      await this.#wake.listen(this.#channel, heard, again, deaf);
      this.#isDeaf = false;
    } catch {
      this.#clock.setTimer(this.#pauseMs, () => {
        if (!this.#closed) void this.listen(missed).then(() => (this.#isDeaf ? undefined : missed()));
      });
      this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  close(): void {
    this.#closed = true;
    this.#isDeaf = true;
    void this.#wake.close();
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
