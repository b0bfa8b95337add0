/** Somebody who waits for messages of a consumer. */
import type { Clock, Timer } from "../../src/domain/clock.ts";
import { nanosToMs } from "./formats.ts";

export interface PullBody {
  readonly batch?: number;
  readonly no_wait?: boolean;
  readonly expires?: number;
  readonly idle_heartbeat?: number;
}

export class PullRequest {
  readonly inbox: string;
  readonly noWait: boolean;
  readonly expiresMs: number;
  readonly heartbeatMs: number;
  /** Messages that it still gets. */
  left: number;
  #expiry: Timer | undefined;
  #heartbeat: Timer | undefined;

  constructor(inbox: string, { batch, no_wait: noWait, expires, idle_heartbeat: heartbeat }: PullBody) {
    this.inbox = inbox;
    this.left = Math.max(1, batch ?? 1);
    this.expiresMs = nanosToMs(expires);
    // With a time limit, it waits after all.
    this.noWait = noWait === true && this.expiresMs === 0;
    this.heartbeatMs = nanosToMs(heartbeat);
  }

  start(clock: Clock, onExpired: () => void, onIdle: () => void): void {
    if (this.expiresMs > 0) this.#expiry = clock.setTimer(this.expiresMs, onExpired);
    this.awaitSilence(clock, onIdle);
  }

  awaitSilence(clock: Clock, onIdle: () => void): void {
    this.#heartbeat?.cancel();
    if (this.heartbeatMs > 0) this.#heartbeat = clock.setTimer(this.heartbeatMs, onIdle);
  }

  stop(): void {
    this.#expiry?.cancel();
    this.#heartbeat?.cancel();
  }
}

/** A bare number is a batch; what cannot be read is one message. */
export function readPull(data: Uint8Array): PullBody {
  const text = Buffer.from(data).toString().trim();
  if (/^\d+$/.test(text)) return { batch: Number(text) };
  try {
    return text === "" ? {} : (JSON.parse(text) as PullBody);
  } catch {
    return {};
  }
}
