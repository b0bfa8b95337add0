export interface Answer<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

/** Listens for the end of somebody's patience, until he is answered: a worker has one signal for all its claims, and it must not keep them. */
export function answered<T>(signal: AbortSignal, giveUp: () => void, { resolve, reject }: Answer<T>): Answer<T> {
  signal.addEventListener("abort", giveUp, { once: true });
  const stop = (): void => signal.removeEventListener("abort", giveUp);
  return {
    resolve(value) {
      stop();
      resolve(value);
    },
    reject(error) {
      stop();
      reject(error);
    },
  };
}
