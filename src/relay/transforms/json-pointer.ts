/** RFC 6901. */
export function atPointer(value: unknown, pointer: string): unknown {
  let found = value;
  for (const step of pointer.split("/").slice(1)) {
    const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(found)) {
      found = /^(?:0|[1-9]\d*)$/.test(name) ? (found as readonly unknown[])[Number(name)] : undefined;
    } else if (typeof found === "object" && found !== null && Object.hasOwn(found, name)) {
      found = Reflect.get(found, name);
    } else {
      return undefined;
    }
  }
  return found;
}

/** Nothing but the whole document, or a path of names that each begin with a slash. */
export function isPointer(text: string): boolean {
  return /^(?:\/(?:[^~/]|~[01])*)*$/.test(text);
}
