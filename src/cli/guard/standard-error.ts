import { createWriteStream } from "node:fs";
import { isatty } from "node:tty";

/**
 * Standard error without blocking. Node writes to a terminal synchronously: one that was halted with Ctrl-S would
 * halt us with it, and leases would run out. Files do not block, and pipes are written asynchronously anyway.
 */
export function openStandardError(): NodeJS.WritableStream {
  const stream = isatty(2) ? createWriteStream("", { fd: 2, autoClose: false }) : process.stderr;
  // Nobody reads any more. What we have to say there is not worth dying for.
  stream.on("error", () => undefined);
  // Every command that waits for a slow reader listens once.
  stream.setMaxListeners(0);
  return stream;
}
