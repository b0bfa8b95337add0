/** What a command that runs others and its guard tell each other. Both ends are of one version: they start and end together. */

/** By both clocks, which are the same for all processes of a machine. It has come when either of them says so. */
export interface Moment {
  readonly monotonic: number;
  readonly wall: number;
}

/** How long the command may go on if the worker is not heard of again. */
export interface Deadlines {
  /** The lease is not certain any more: ask the command to end. */
  readonly endAt: Moment;
  /** The lease is about to end in the store: the command must be gone. */
  readonly killAt: Moment;
}

export interface RunRequest {
  readonly type: "run";
  readonly run: number;
  readonly command: string;
  readonly commandArguments: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** Undefined: it has the standard input and the standard error of whoever called us. */
  readonly input: Uint8Array | undefined;
  readonly deadlines: Deadlines;
}

export type ToGuard =
  | RunRequest
  | { readonly type: "renewed"; readonly runs: readonly { readonly run: number; readonly deadlines: Deadlines }[] }
  | { readonly type: "signal"; readonly signal: NodeJS.Signals }
  | { readonly type: "end"; readonly run: number; readonly killAfterMs: number };

/** How a command ended. */
export type CommandEnd =
  | { readonly type: "exited"; readonly code: number; readonly stderr: string }
  | { readonly type: "killed"; readonly signal: string; readonly stderr: string }
  | { readonly type: "not-started"; readonly code: string; readonly message: string };

export type FromGuard =
  /** It hears us from now on. */
  | { readonly type: "ready" }
  | { readonly type: "started"; readonly run: number; readonly pid: number }
  | { readonly type: "ended"; readonly run: number; readonly end: CommandEnd };

export function isToGuard(message: unknown): message is ToGuard {
  return hasType(message, ["run", "renewed", "signal", "end"]);
}

export function isFromGuard(message: unknown): message is FromGuard {
  return hasType(message, ["ready", "started", "ended"]);
}

function hasType(message: unknown, types: readonly string[]): boolean {
  return (
    typeof message === "object" &&
    message !== null &&
    "type" in message &&
    typeof message.type === "string" &&
    types.includes(message.type)
  );
}
