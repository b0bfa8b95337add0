import { type ChildProcess, spawn } from "node:child_process";
import { DONE, type Outcome, shorten } from "../../outcome.ts";
import type { RelayContext } from "../../context.ts";
import type { CommandSettings, FatalSettings, RelayMessage } from "../../settings.ts";
import { Breaker } from "../breaker.ts";
import type { Processor } from "../processor.ts";

/** EX_DATAERR of sysexits: the input is wrong, and stays wrong however often it is tried. As with `baton work`. */
const BAD_DATA = 65;
/** Between SIGTERM and SIGKILL. */
const KILL_AFTER_MS = 5_000;
/** The end of what the command said, which most often says why. */
const TAIL_BYTES = 1_000;

/**
 * The program is not there, may not be run, or the machine has no room for a process: that says nothing of the message.
 * What is left may be the message's own fault, whose key and id are in the environment of the command.
 */
const NOT_STARTED: ReadonlySet<string | undefined> = new Set([
  "ENOENT",
  "EACCES",
  "EPERM",
  "ENOEXEC",
  "ETXTBSY",
  "EAGAIN",
  "ENOMEM",
  "EMFILE",
  "ENFILE",
]);
/** How long nothing is begun then; one message tries after that. */
const OPEN_MS = 10_000;
/** A command that has run for so long was started. */
const PROBE_MS = 1_000;

/** How a command ended: it could not be started, exited, or was killed. */
type End =
  | { readonly error: NodeJS.ErrnoException }
  | { readonly code: number | null; readonly signal: NodeJS.Signals | null; readonly said: string };

/**
 * Runs a command per message, without a shell: the data on standard input, what is known of the message in its
 * environment.
 */
export function commandProcessor(context: RelayContext, settings: CommandSettings, onRoom: () => void): Processor {
  const { command } = settings;
  const parts = { target: command, probeMs: PROBE_MS, onRoom, knock: undefined };
  const breaker = new Breaker(context, { failures: Infinity, openMs: OPEN_MS }, parts);
  const target = (isSo: boolean): readonly string[] => (isSo ? [command] : []);
  return {
    most: Infinity,
    get room() {
      return breaker.room;
    },
    get openCircuits() {
      return target(breaker.isOpen);
    },
    get unreachable() {
      return target(breaker.isOpen);
    },
    process: async (message) => {
      if (!breaker.enter())
        return { type: "back", reason: `The command ${command} cannot be started now.`, delayMs: 0 };
      const end = await run(settings, message);
      if ("error" in end && NOT_STARTED.has(end.error.code)) {
        const reason = notStarted(command, end.error);
        breaker.unreachable(reason);
        return { type: "unreachable", target: command, reason, delayMs: 0 };
      }
      breaker.succeeded();
      return outcomeOf(end, settings.fatal, command);
    },
    close: () => Promise.resolve(breaker.close()),
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
  if ("error" in end) return { type: "retry", reason: notStarted(command, end.error) };
  const { code, signal, said } = end;
  if (code === 0) return DONE;
  const how = signal === null ? `exited with code ${String(code)}` : `was killed by ${signal}`;
  const reason = shorten(`The command ${how}${said === "" ? "." : `: ${said}`}`);
  if (code !== null && (code === BAD_DATA || fatal.codes.includes(code)))
    return { type: fatal.action === "drop" ? "drop" : "dead", reason };
  return { type: "retry", reason };
}

function notStarted(command: string, { message }: Error): string {
  return `The command ${command} could not be started: ${message}`;
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
