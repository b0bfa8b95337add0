import { type ChildProcess, spawn } from "node:child_process";
import { DONE, type Outcome, shorten } from "../../outcome.ts";
import type { CommandSettings, FatalSettings, RelayMessage } from "../../settings.ts";
import type { Processor } from "../processor.ts";

/** EX_DATAERR of sysexits: the input is wrong, and stays wrong however often it is tried. As with `baton work`. */
const BAD_DATA = 65;
/** Between SIGTERM and SIGKILL. */
const KILL_AFTER_MS = 5_000;
/** The end of what the command said, which most often says why. */
const TAIL_BYTES = 1_000;

/** How a command ended: it could not be started, exited, or was killed. */
type End =
  | { readonly error: NodeJS.ErrnoException }
  | { readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly said: string };

/**
 * Runs a command per message, without a shell: the data on standard input, what is known of the message in its
 * environment.
 */
export function commandProcessor(settings: CommandSettings): Processor {
  return {
    most: Infinity,
    room: Infinity,
    openCircuits: [],
    process: async (message) => outcomeOf(await run(settings, message), settings.fatal, settings.command),
    close: () => Promise.resolve(),
  };
}

/** Resolves when the command has ended and nobody holds its output any more. */
function run({ command, arguments: words }: CommandSettings, message: RelayMessage): Promise<End> {
  const { signal, data } = message;
  return new Promise<End>((resolve) => {
    // A group of its own, so that all it starts can be ended with it. Our standard output is for our log.
    const child = spawn(command, words, {
      env: { ...process.env, ...withoutNul(environmentOf(message)) },
      stdio: ["pipe", 2, "pipe"],
      detached: process.platform !== "win32",
    });
    let tail = Buffer.alloc(0);
    child.stderr?.on("data", (chunk: Buffer) => {
      process.stderr.write(chunk);
      tail = Buffer.concat([tail, chunk]).subarray(-TAIL_BYTES);
    });
    let killer: NodeJS.Timeout | undefined;
    const end = (): void => {
      kill(child, "SIGTERM");
      killer = setTimeout(() => kill(child, "SIGKILL"), KILL_AFTER_MS);
    };
    const ended = (how: End): void => {
      clearTimeout(killer);
      signal.removeEventListener("abort", end);
      resolve(how);
    };
    child.once("error", (error) => ended({ error }));
    child.once("close", (code, by) => ended({ code, signal: by, said: tail.toString("utf8").trim() }));
    // A command need not read its input; that it has closed it is no error.
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(data);
    signal.addEventListener("abort", end, { once: true });
    if (signal.aborted) end();
  });
}

function outcomeOf(end: End, fatal: FatalSettings, command: string): Outcome {
  if ("error" in end)
    return { type: "retry", reason: `The command ${command} could not be started: ${end.error.message}` };
  const { code, signal, said } = end;
  if (code === 0) return DONE;
  const how = signal === null ? `exited with code ${String(code)}` : `was killed by ${signal}`;
  const reason = shorten(`The command ${how}${said === "" ? "." : `: ${said}`}`);
  if (code !== null && (code === BAD_DATA || fatal.codes.includes(code)))
    return { type: fatal.action === "drop" ? "drop" : "dead", reason };
  return { type: "retry", reason };
}

function environmentOf({ id, source, key, attempt, fence, contentType }: RelayMessage): Record<string, string> {
  return {
    BATON_QUEUE: source,
    BATON_ID: id,
    BATON_ATTEMPT: String(attempt),
    ...(key === undefined ? {} : { BATON_KEY: key }),
    ...(fence === undefined ? {} : { BATON_FENCE: String(fence) }),
    ...(contentType === undefined ? {} : { BATON_CONTENT_TYPE: contentType }),
  };
}

/** No environment can carry it, and it may come from a queue. */
function withoutNul(values: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.replaceAll("\0", "")]));
}

function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    if (process.platform === "win32") child.kill(signal);
    else process.kill(-child.pid, signal);
  } catch {
    // It is gone already.
  }
}
