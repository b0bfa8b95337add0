/** Reads every message of a store, and names those that Baton cannot read: for the doctor. Nothing else pays for it. */
import { isError } from "../../domain/realms.ts";
import type { Stored } from "./api-replies.ts";
import { decodeItem, decodeOutcome, decodeState, decodeWith } from "./codec.ts";
import type { JetStream } from "./jetstream.ts";
import { textOf, tokenOf } from "./key-token.ts";
import { textOfBytes } from "./own-json.ts";
import { readLine } from "./session-line.ts";
import { readRecord } from "./setup.ts";
import type { Subjects } from "./subjects.ts";

/** Read at a time; a payload may have a few hundred kilobytes. */
const PAGE = 64;
/** Of a stream. A stream that has more is healthy, or has its damage among these. */
const MOST_READ = 100_000;
/** Where each is asked for by itself. */
const MOST_READ_SINGLY = 10_000;

export interface DamagedMessage {
  readonly stream: string;
  readonly stored: Stored;
  /** What cannot be known because of it, for people. */
  readonly what: string;
  readonly why: string;
  /** The key whose state it hides. */
  readonly hides?: { readonly queue: string; readonly key: string };
  /** Baton reads nothing there: it is only in the way. */
  readonly isStray: boolean;
}

export interface Scan {
  readonly damaged: readonly DamagedMessage[];
  /** So many messages were read, and these are not all. */
  readonly readOnly?: number;
}

export async function scanStream(js: JetStream, subjects: Subjects, stream: string, filter: string): Promise<Scan> {
  const damaged: DamagedMessage[] = [];
  const most = js.isReplicated(stream) ? MOST_READ_SINGLY : MOST_READ;
  let count = 0;
  for (let from = 1; ;) {
    const page = await js.nextFew(stream, filter, from, PAGE);
    const last = page.at(-1);
    if (last === undefined) return { damaged };
    for (const stored of page) {
      const found = judge(subjects, stored);
      if (found !== undefined) damaged.push({ stream, stored, ...found });
    }
    count += page.length;
    if (count >= most) return { damaged, readOnly: count };
    from = last.sequence + 1;
  }
}

type Judgement = Omit<DamagedMessage, "stream" | "stored">;

/** Undefined: it is as Baton writes it. */
function judge({ prefix }: Subjects, stored: Stored): Judgement | undefined {
  const tokens = stored.subject.slice(prefix.length + 1).split(".");
  const rule = ruleFor(tokens);
  if (rule === undefined) return { what: "Nothing", why: `Baton uses no subject ${stored.subject}`, isStray: true };
  try {
    rule.read(stored);
    return undefined;
  } catch (error) {
    const why = isError(error) ? error.message : String(error);
    const { what, hides } = rule;
    return { what, why, isStray: false, ...(hides === undefined ? {} : { hides }) };
  }
}

interface Rule {
  readonly what: string;
  readonly hides?: { readonly queue: string; readonly key: string };
  /** Throws when the message is not one of Baton's. */
  readonly read: (stored: Stored) => unknown;
}

const NOTHING_TO_READ = (): void => undefined;

function ruleFor([room = "", ...rest]: readonly string[]): Rule | undefined {
  if (room === "q") return ruleOfQueue(rest);
  return room === "c" ? ruleOfShared(rest) : undefined;
}

/** `s.<level or run>.0.<key>`, `w.<level>.<key>` */
function ruleOfQueue([queue = "", kind, ...rest]: readonly string[]): Rule | undefined {
  const key = rest.at(-1) ?? "";
  const what = (): string => `Key ${JSON.stringify(textOf(key))} of queue ${queue}`;
  if (!isToken(key)) return undefined;
  if (kind === "s" && rest.length === 3) {
    return { what: what(), hides: { queue, key }, read: stateIn };
  }
  if (kind === "w" && rest.length === 2) return { what: `An item in line for ${lower(what())}`, read: itemIn };
  return undefined;
}

function ruleOfShared([kind, ...rest]: readonly string[]): Rule | undefined {
  const [queue = "", name = ""] = rest;
  const inQueue = `of queue ${queue}`;
  if (kind === "queue" && rest.length === 1)
    return { what: `The record ${inQueue}`, read: ({ data }) => readRecord(data) };
  if (kind === "cell" && rest.length === 2) return ruleOfCell(queue, name);
  if (kind === "session" && rest.length === 2)
    return { what: `The sign of life of a worker ${inQueue}`, read: ({ data }) => readLine(data) };
  if (!isToken(name)) return undefined;
  const text = JSON.stringify(textOf(name));
  if (kind === "id" && rest.length === 2)
    return { what: `What is remembered of item ${text} ${inQueue}`, read: ({ data }) => decodeOutcome(data) };
  if (kind === "dead" && rest.length === 2)
    return { what: `Dead letter ${text} ${inQueue}`, read: ({ data }) => decodeWith(data) };
  if (kind === "later" && rest.length === 3) return { what: `A delayed item of key ${text} ${inQueue}`, read: itemIn };
  if (kind === "wake" && rest.length === 2)
    return { what: `The back-off of key ${text} ${inQueue}`, read: NOTHING_TO_READ };
  if (kind === "due" && rest.length === 2)
    return {
      what: `An item that came due for key ${text} ${inQueue}`,
      read: (stored) => stored.data.length > 0 && itemIn(stored),
    };
  return undefined;
}

/** See `register.ts`: `+` or `-`, the nonce of its write, a line end, and JSON. */
function ruleOfCell(kind: string, token: string): Rule | undefined {
  if (!isToken(token)) return undefined;
  const read = ({ data }: Stored): void => {
    const text = textOfBytes(data);
    if (text.startsWith("-")) return;
    const end = text.indexOf("\n");
    if (!text.startsWith("+") || end === -1) throw new TypeError("it is no cell of a lock");
    if (kind === "lock" || kind === "session") JSON.parse(text.slice(end + 1));
  };
  return { what: `The ${kind} ${JSON.stringify(textOf(token))}`, read };
}

function stateIn({ data, sequence }: Stored): unknown {
  return decodeState(data, sequence);
}

function itemIn({ data, sequence }: Stored): unknown {
  return decodeItem(data, sequence);
}

/** Whether it stands for a key, an id or a name. */
function isToken(token: string): boolean {
  return token !== "" && tokenOf(textOf(token)) === token;
}

function lower(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
