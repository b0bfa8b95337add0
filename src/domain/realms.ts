/**
 * Values that an application made may come of another realm than Baton's own: of a `vm` context, in which Jest runs its tests, or of
 * jsdom. `instanceof` knows its own realm only.
 */

/** jsdom makes its DOMException by hand, so that nothing but its name tells. */
export function isError(value: unknown): value is Error {
  return Error.isError(value) || nameOf(value) === "[object DOMException]" || isHeir(value);
}

export function isBytes(value: unknown): value is Uint8Array {
  return ArrayBuffer.isView(value) && nameOf(value) === "[object Uint8Array]";
}

function nameOf(value: unknown): string {
  return Object.prototype.toString.call(value);
}

/** Old classes of errors are functions that put `Error.prototype` behind their own. */
function isHeir(value: unknown): boolean {
  // oxlint-disable-next-line unicorn/no-instanceof-builtins -- here the realm is ours
  return value instanceof Error;
}
