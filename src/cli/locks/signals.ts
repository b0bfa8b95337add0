/** Those that people and service managers send to a command. SIGKILL and SIGSTOP cannot be heard. */
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH"] as const;
/** Those that mean the end; the others are for a command that runs. */
const ENDING: ReadonlySet<string> = new Set(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]);

/** Hears signals for as long as it is not disposed of. */
export function onSignals(hear: (signal: NodeJS.Signals, ends: boolean) => void): Disposable {
  const listener = (signal: NodeJS.Signals): void => hear(signal, ENDING.has(signal));
  for (const signal of SIGNALS) process.on(signal, listener);
  return {
    [Symbol.dispose]: () => {
      for (const signal of SIGNALS) process.off(signal, listener);
    },
  };
}
