import { type BatonError, type BatonEvent, describeWarning, LockLost } from "../index.ts";
import { printableJson, printableLines } from "./printable.ts";

/** A whole line, already printable, to standard output. */
export function printLine(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** One JSON value on one line. */
export function printJson(value: unknown): void {
  process.stdout.write(`${printableJson(value)}\n`);
}

export function printError(error: unknown): void {
  process.stderr.write(`baton: ${printableLines(errorText(error))}\n`);
}

export function printWarning(text: string): void {
  process.stderr.write(`baton: ${printableLines(text)}\n`);
}

/** What a person should see of an event, if anything: a sentence on standard error. */
export function printEvent(event: BatonEvent): void {
  const warning = describeWarning(event);
  if (warning !== undefined) printWarning(warning);
}

/** A stack trace is for those who look for a mistake in Baton; everybody else gets the sentence. */
function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (process.env["BATON_DEBUG"] === "1") return error.stack ?? error.message;
  return error.message === "" ? error.name : error.message;
}

/** The exit codes of DESIGN: 3 means that the store is well and said no. */
const REFUSED: readonly string[] = [
  "KEY_BUSY",
  "KEY_FULL",
  "QUEUE_FULL",
  "QUEUE_NOT_EMPTY",
  "LOCK_BUSY",
] satisfies readonly BatonError["code"][];

export function exitCodeOf(error: unknown): number {
  if (isRefusal(error)) return 3;
  return error instanceof LockLost ? 4 : 1;
}

export function isRefusal(error: unknown): boolean {
  return error instanceof Error && "code" in error && typeof error.code === "string" && REFUSED.includes(error.code);
}

/** `baton keys q | head`: whoever reads has enough. That is no error of ours. */
export function leaveQuietlyWhenNobodyReads(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit();
  });
}
