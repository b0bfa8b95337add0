import { roughly } from "../times.ts";

/** A hang-up is the terminal closing: those commands deserve their grace as well. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export interface Stoppable {
  /** May be called again with a shorter time. */
  readonly stop: (graceMs: number) => void;
  readonly kill: () => void;
  readonly graceMs: number;
  readonly say: (text: string) => void;
}

/** The first signal stops gracefully, the second hurries, the third does not ask any more. */
export function stopOnSignals({ stop, kill, graceMs, say }: Stoppable): Disposable {
  let signals = 0;
  const hear = (signal: NodeJS.Signals): void => {
    signals += 1;
    if (signals === 1) {
      say(`${signal}: takes nothing new; running commands have ${roughly(graceMs)} to finish. Again to end them now.`);
      stop(graceMs);
    } else if (signals === 2) {
      say(`${signal}: ends running commands; their items go back to the queue.`);
      stop(0);
    } else {
      kill();
    }
  };
  // Nobody reads our events any more: that asks us to stop, too.
  const unread = (): void => hear("SIGHUP");
  for (const signal of SIGNALS) process.on(signal, hear);
  process.stdout.removeAllListeners("error");
  process.stdout.once("error", unread);
  process.stdout.on("error", () => undefined);
  return {
    [Symbol.dispose]: () => {
      for (const signal of SIGNALS) process.off(signal, hear);
    },
  };
}
