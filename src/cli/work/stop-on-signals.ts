import { roughly } from "../times.ts";

/** A hang-up is the terminal closing: those commands deserve their grace as well. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export interface Stoppable {
  /** May be called again with a shorter time. */
  readonly stop: (graceMs: number) => void;
  readonly kill: () => void;
}

export interface Stopping {
  readonly graceMs: number;
  readonly say: (text: string) => void;
  /** A signal came while nothing was running that it could stop. */
  readonly leave: () => void;
}

/** The first signal stops gracefully, the second hurries, the third does not ask any more. */
export class StopOnSignals implements Disposable {
  readonly #stopping: Stopping;
  #running: Stoppable | undefined;
  #signals = 0;

  /** Signals are heard from here on: those who see a worker start may stop it at once. */
  constructor(stopping: Stopping) {
    this.#stopping = stopping;
    for (const signal of SIGNALS) process.on(signal, this.#hear);
    process.stdout.removeAllListeners("error");
    // Nobody reads our events any more: that asks us to stop, too.
    process.stdout.once("error", () => this.#hear("SIGHUP"));
    process.stdout.on("error", () => undefined);
  }

  /** This is what signals stop from now on. */
  started(running: Stoppable): void {
    this.#running = running;
  }

  ended(): void {
    this.#running = undefined;
  }

  [Symbol.dispose](): void {
    for (const signal of SIGNALS) process.off(signal, this.#hear);
  }

  readonly #hear = (signal: NodeJS.Signals): void => {
    const { graceMs, say, leave } = this.#stopping;
    const running = this.#running;
    if (running === undefined) return leave();
    this.#signals += 1;
    if (this.#signals === 1) {
      say(`${signal}: takes nothing new; running commands have ${roughly(graceMs)} to finish. Again to end them now.`);
      running.stop(graceMs);
    } else if (this.#signals === 2) {
      say(`${signal}: ends running commands; their items go back to the queue.`);
      running.stop(0);
    } else {
      running.kill();
    }
  };
}
