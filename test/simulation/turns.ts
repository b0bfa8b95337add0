/**
 * When is everything that follows from one event over? Promises run to their end before the next immediate does;
 * the worker runtime also uses setImmediate. So immediates are counted: when one of ours runs and no other is
 * outstanding, nothing is left to happen until virtual time moves.
 */
const immediate = globalThis.setImmediate;
let outstanding = 0;

function counted<Arguments extends readonly unknown[]>(
  callback: (...parameters: Arguments) => void,
  ...parameters: Arguments
): NodeJS.Immediate {
  outstanding += 1;
  return immediate(() => {
    outstanding -= 1;
    callback(...parameters);
  });
}

/** From here on, for this thread. */
export function countImmediates(): void {
  // Nothing in the product promisifies setImmediate, and nothing clears one.
  globalThis.setImmediate = counted as typeof setImmediate;
}

export async function untilQuiet(): Promise<void> {
  for (;;) {
    await new Promise<void>((resolve) => immediate(resolve));
    if (outstanding === 0) return;
  }
}
