import type { RelayContext } from "../context.ts";
import type { DeadLetterStore } from "../dead-letters/dead-letters.ts";
import type { Verdict } from "../outcome.ts";
import type { SourceSettings } from "../settings.ts";
import type { Source, SourceMessage } from "../source.ts";
import type { Attempts } from "./attempts.ts";
import type { Refused } from "./refused.ts";
import { tellSource } from "./settle.ts";

/** What all deliveries from one source share. */
export interface Origin {
  /** 0 is the most urgent. */
  readonly rank: number;
  readonly settings: SourceSettings;
  readonly source: Source;
  /** The source is the very Baton queue that keeps the keys: its messages hold theirs already. */
  readonly keepsKeys: boolean;
  readonly attempts: Attempts;
  readonly refused: Refused;
  readonly deadLetters: DeadLetterStore | undefined;
}

/** A message whose work is over. */
export interface Ended {
  readonly context: RelayContext;
  readonly origin: Origin;
  readonly message: SourceMessage;
  readonly key: string | undefined;
  readonly attempt: number;
  readonly tookMs: number;
  /** Fires when the source is not to be told again and again any more. */
  readonly over: AbortSignal;
}

/** One that nobody can keep comes again and again: not in a busy loop, whatever the back-off. */
const SHORTEST_STAY_MS = 1_000;
/** Less and less often, too: many of them would take the slots and keys that others wait for. */
const LONGEST_STAY_MS = 300_000;

/**
 * Does what the verdict says, and tells it. If its source could not be told, the message may come again, and nothing is
 * told of it but that trouble.
 */
export async function carryOut(ended: Ended, verdict: Verdict): Promise<void> {
  switch (verdict.type) {
    case "done":
      return (await acknowledge(ended)) ? tell(ended, { type: "done" }) : undefined;
    case "drop":
      return (await acknowledge(ended)) ? tell(ended, verdict) : undefined;
    case "dead":
      return await bury(ended, verdict.reason);
    case "retry":
    case "back":
    case "unreachable":
      if (await giveBack(ended, verdict.delayMs, verdict.type === "retry")) tell(ended, verdict);
  }
}

/** A letter is safe before its message is forgotten. One that nobody can keep stays where it is. */
async function bury(ended: Ended, reason: string): Promise<void> {
  const { context, origin, message, key, attempt } = ended;
  const { deadLetters, settings, source } = origin;
  const delayMs = Math.max(settings.retry.maxBackoffMs, SHORTEST_STAY_MS);
  if (deadLetters !== undefined) {
    try {
      await deadLetters.keep({ source: source.name, message, key, attempt, reason });
    } catch (error) {
      context.tell({ type: "trouble", doing: `keeping a dead letter in ${deadLetters.place}`, error });
      return void (await giveBack(ended, delayMs, true));
    }
    return (await acknowledge(ended)) ? tell(ended, { type: "dead", reason, to: deadLetters.place }) : undefined;
  }
  if (settings.deadLetter.to === "drop")
    return (await acknowledge(ended)) ? tell(ended, { type: "dead", reason, to: "nowhere" }) : undefined;
  if (message.bury === undefined) {
    const to = "the source, which keeps it: it has no dead letters of its own";
    const again = Math.max(0, attempt - settings.retry.attempts);
    const stayMs = Math.max(delayMs, Math.min(SHORTEST_STAY_MS * 2 ** again, LONGEST_STAY_MS));
    return (await giveBack(ended, stayMs, true)) ? tell(ended, { type: "dead", reason, to }) : undefined;
  }
  const { bury: buryIt } = message;
  if (!(await toldSource(ended, "burying a message", () => buryIt(reason)))) return;
  forget(ended);
  tell(ended, { type: "dead", reason, to: "the dead letters of the source" });
}

async function acknowledge(ended: Ended): Promise<boolean> {
  const { message } = ended;
  const told = await toldSource(ended, "acknowledging a message", () => message.acknowledge());
  if (told) forget(ended);
  return told;
}

/** It does not come again. */
function forget({ origin, message }: Ended): void {
  origin.attempts.forget(message.id);
  origin.refused.forget(message.id);
}

async function giveBack(ended: Ended, delayMs: number, countAttempt: boolean): Promise<boolean> {
  const { message, origin, attempt } = ended;
  origin.attempts.note(message, attempt, countAttempt);
  return await toldSource(ended, "giving a message back", () => message.giveBack({ delayMs, countAttempt }));
}

function toldSource({ context, origin, over }: Ended, doing: string, tellIt: () => Promise<void>): Promise<boolean> {
  return tellSource(context, origin.source.name, doing, tellIt, over);
}

type Told =
  | { readonly type: "done" }
  | { readonly type: "drop"; readonly reason: string }
  | { readonly type: "dead"; readonly reason: string; readonly to: string }
  | { readonly type: "retry" | "back"; readonly reason: string; readonly delayMs: number }
  | { readonly type: "unreachable"; readonly target: string; readonly reason: string; readonly delayMs: number };

function tell({ context, origin, message, key, attempt, tookMs }: Ended, told: Told): void {
  context.tell({ source: origin.source.name, id: message.id, key, attempt, tookMs, ...told });
}
