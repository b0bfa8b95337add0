/** What a stream holds: messages by sequence and by subject. Sequences are never given twice. */
import { isPattern, matches } from "./subjects.ts";

export interface Message {
  readonly sequence: number;
  readonly subject: string;
  readonly headers: Uint8Array | undefined;
  readonly data: Uint8Array;
  readonly wallMs: number;
}

interface Change {
  readonly at: number;
  readonly added?: Message;
  readonly removed?: Message;
}

/** As many changes as somebody can be behind. */
const REMEMBERED = 512;
/** What the file store needs for a message, besides its contents. */
const FRAME_BYTES = 30;
const HEADER_FRAME_BYTES = 4;

export class Messages {
  readonly #bySequence = new Map<number, Message>();
  readonly #bySubject = new Map<string, number[]>();
  readonly #changes: Change[] = [];
  readonly #now: () => number;
  lastSequence = 0;
  lastMs: number | undefined;
  bytes = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  get count(): number {
    return this.#bySequence.size;
  }

  get subjectCount(): number {
    return this.#bySubject.size;
  }

  /** The sequence that would be given next when there is no message. */
  get firstSequence(): number {
    const [first] = this.#bySequence.keys();
    return first ?? (this.lastSequence === 0 ? 0 : this.lastSequence + 1);
  }

  add(message: Message): void {
    this.#put(message);
    this.lastSequence = Math.max(this.lastSequence, message.sequence);
    this.lastMs = message.wallMs;
    this.#remember({ at: this.#now(), added: message });
  }

  remove(sequence: number): Message | undefined {
    const message = this.#bySequence.get(sequence);
    if (message === undefined) return undefined;
    this.#take(message);
    this.#remember({ at: this.#now(), removed: message });
    return message;
  }

  /** A removal that did not last. */
  revive(message: Message): void {
    const all = [...this.#bySequence.values(), message].toSorted((a, b) => a.sequence - b.sequence);
    this.#bySequence.clear();
    this.#bySubject.clear();
    this.bytes = 0;
    for (const each of all) this.#put(each);
  }

  get(sequence: number): Message | undefined {
    return this.#bySequence.get(sequence);
  }

  /** The last of all whose subjects match. */
  last(pattern: string): Message | undefined {
    let last = 0;
    for (const subject of this.#subjects(pattern)) last = Math.max(last, this.#bySubject.get(subject)?.at(-1) ?? 0);
    return this.#bySequence.get(last);
  }

  /** The last of each subject that matches one of the patterns, in order of sequence. */
  lastOfEach(patterns: readonly string[], upTo: number): Message[] {
    const found = new Set<number>();
    for (const pattern of patterns) {
      for (const subject of this.#subjects(pattern)) {
        const last = this.#bySubject.get(subject)?.findLast((sequence) => sequence <= upTo);
        if (last !== undefined) found.add(last);
      }
    }
    return this.#inOrder(found);
  }

  /** All from a sequence on whose subjects match, in order. */
  from(sequence: number, pattern = ">"): Message[] {
    if (pattern === ">") return [...this.#bySequence.values()].filter((message) => message.sequence >= sequence);
    const found = new Set<number>();
    for (const subject of this.#subjects(pattern)) {
      for (const each of this.#bySubject.get(subject) ?? []) if (each >= sequence) found.add(each);
    }
    return this.#inOrder(found);
  }

  countBySubject(pattern: string): [subject: string, count: number][] {
    return this.#subjects(pattern)
      .map((subject): [string, number] => [subject, this.#bySubject.get(subject)?.length ?? 0])
      .toSorted(([a], [b]) => (a < b ? -1 : 1));
  }

  /** What somebody sees who is some changes behind. */
  behind(changes: number): Messages {
    if (changes <= 0) return this;
    const view = new Messages(this.#now);
    const held = new Map(this.#bySequence);
    for (const change of this.#changes.slice(-changes).toReversed()) {
      if (change.added !== undefined) held.delete(change.added.sequence);
      if (change.removed !== undefined) held.set(change.removed.sequence, change.removed);
    }
    for (const message of [...held.values()].toSorted((a, b) => a.sequence - b.sequence)) view.add(message);
    return view;
  }

  /** How many changes are younger than that. */
  changesWithin(ms: number): number {
    const since = this.#now() - ms;
    const oldest = this.#changes.findIndex((change) => change.at > since);
    return oldest < 0 ? 0 : this.#changes.length - oldest;
  }

  #subjects(pattern: string): string[] {
    if (!isPattern(pattern)) return this.#bySubject.has(pattern) ? [pattern] : [];
    return [...this.#bySubject.keys()].filter((subject) => matches(pattern, subject));
  }

  #inOrder(sequences: ReadonlySet<number>): Message[] {
    return [...sequences]
      .toSorted((a, b) => a - b)
      .map((sequence) => this.#bySequence.get(sequence))
      .filter((message) => message !== undefined);
  }

  #put(message: Message): void {
    this.#bySequence.set(message.sequence, message);
    const sequences = this.#bySubject.get(message.subject);
    if (sequences === undefined) this.#bySubject.set(message.subject, [message.sequence]);
    else sequences.push(message.sequence);
    this.bytes += sizeOf(message);
  }

  #take(message: Message): void {
    this.#bySequence.delete(message.sequence);
    const sequences = this.#bySubject.get(message.subject) ?? [];
    sequences.splice(sequences.indexOf(message.sequence), 1);
    if (sequences.length === 0) this.#bySubject.delete(message.subject);
    this.bytes -= sizeOf(message);
  }

  #remember(change: Change): void {
    this.#changes.push(change);
    if (this.#changes.length > 2 * REMEMBERED) this.#changes.splice(0, REMEMBERED);
  }
}

export function sizeOf({ subject, headers, data }: Message): number {
  const headerBytes = headers === undefined ? 0 : HEADER_FRAME_BYTES + headers.length;
  return FRAME_BYTES + Buffer.byteLength(subject) + headerBytes + data.length;
}
