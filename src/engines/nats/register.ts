/**
 * The cells that locks are kept in: the last message on a subject each, its version the message's sequence. Every change is a
 * compare-and-swap that removes the message before it, so that none can come to light again when this one's time is up.
 *
 * To remove a cell is to write a tombstone that vanishes by itself, because a delete costs the server three times as much.
 * Whoever makes the cell anew while the tombstone is there replaces it.
 */
import type { Clock } from "../../domain/clock.ts";
import { InvalidInput, OutcomeUnknown } from "../../domain/errors.ts";
import type { Cell, Register, WriteRequest } from "../../locks/register.ts";
import type { Stored } from "./api-replies.ts";
import type { JetStream } from "./jetstream.ts";
import { textOf, tokenOf } from "./key-token.ts";
import type { Nonces } from "./nonce.ts";
import { textOfBytes } from "./own-json.ts";
import { Lost } from "./requests.ts";
import { lastToken, type Subjects } from "./subjects.ts";
import type { Wire } from "./wire.ts";
import { sendUnanswered } from "./unanswered.ts";
import { Watches } from "./watches.ts";

/** As short as a server can make it. */
const TOMBSTONE_SECONDS = 1;
/** Within so much of a tombstone's life, counted here from before a write, nothing can have come and vanished there. */
const CERTAIN_MS = TOMBSTONE_SECONDS * 1_000 * 0.8;
const MOST_TRIES = 6;
/** Servers of a cluster tell each other in this time who listens. What was told before that is heard by looking once more. */
const LISTENING_MS = 100;
/** Well within the 4,096 bytes of a line of the protocol. */
const LONGEST_TOKEN = 1_024;
const KIND = /^[a-z]+$/;

/** The first character of a message: what follows is the nonce of its write, then a line end and the value. */
const CELL = "+";
const TOMBSTONE = "-";

export interface RegisterParts {
  readonly js: JetStream;
  readonly wire: Wire;
  readonly clock: Clock;
  readonly nonces: Nonces;
  readonly subjects: Subjects;
  /** Does a call when the stream is there, and turns what goes wrong into errors for users. */
  readonly run: <T>(what: string, work: () => Promise<T>) => Promise<T>;
}

export class NatsRegister implements Register {
  readonly #js: JetStream;
  readonly #wire: Wire;
  readonly #clock: Clock;
  readonly #nonces: Nonces;
  readonly #subjects: Subjects;
  readonly #run: RegisterParts["run"];
  readonly #watches: Watches;
  readonly #listeners: Watches;
  /** Of this process, as long as they are surely there: whoever lets go of a lock often takes it again. Oldest first. */
  readonly #tombstones = new Map<string, { readonly sequence: number; readonly at: number }>();

  constructor({ js, wire, clock, nonces, subjects, run }: RegisterParts) {
    this.#js = js;
    this.#wire = wire;
    this.#clock = clock;
    this.#nonces = nonces;
    this.#subjects = subjects;
    this.#run = run;
    this.#watches = new Watches(wire, clock);
    this.#listeners = new Watches(wire, clock, [LISTENING_MS]);
  }

  async read(name: string): Promise<Cell | undefined> {
    const subject = this.#subjectOf(name);
    return await this.#run("a look at a lock", async () => {
      const last = await this.#last(subject);
      if (last === undefined) return undefined;
      this.#watches.hasRead(subject, last.data);
      return cellOf(name, last);
    });
  }

  async write({ name, expected, value, ttlMs, tell = [] }: WriteRequest): Promise<number | undefined> {
    const subject = this.#subjectOf(name);
    const nonce = this.#nonces.next();
    const change: Change =
      value === undefined
        ? { subject, nonce, data: TOMBSTONE + nonce, ttlSeconds: TOMBSTONE_SECONDS }
        : { subject, nonce, data: `${CELL}${nonce}\n${value}`, ttlSeconds: secondsOf(ttlMs) };
    return await this.#run("a change of a lock", async () => {
      const at = this.#clock.monotonic();
      const version = await this.#change(change, expected, tell);
      this.#tombstones.delete(subject);
      if (version !== undefined && value === undefined) this.#remember(subject, version, at);
      return version;
    });
  }

  async watch(name: string, changed: () => void): Promise<{ stop(): void }> {
    const subject = this.#subjectOf(name);
    // The stream need not be there to listen; but whoever may not listen should hear of it.
    return await this.#run("a look at a lock", () => Promise.resolve(this.#watches.add(subject, changed)));
  }

  async listen(name: string, told: () => void): Promise<{ stop(): void }> {
    const subject = this.#subjectOfListener(name);
    return await this.#run("waiting for a lock", () => Promise.resolve(this.#listeners.add(subject, told)));
  }

  async list(prefix: string): Promise<readonly Cell[]> {
    const { kind } = split(prefix);
    return await this.#run("a look at locks", async () => {
      const found = await this.#js.lastOfEach(this.#subjects.shared, this.#subjects.cells(kind));
      return found
        .map((stored) => cellOf(`${kind}/${textOf(lastToken(stored.subject))}`, stored))
        .filter((cell) => cell !== undefined)
        .filter(({ name }) => name.startsWith(prefix))
        .toSorted((a, b) => (a.name < b.name ? -1 : 1));
    });
  }

  async close(): Promise<void> {
    this.#watches.close();
    this.#listeners.close();
    await Promise.resolve();
  }

  async #change(change: Change, expected: number, tell: readonly string[]): Promise<number | undefined> {
    try {
      const version = expected === 0 ? await this.#create(change) : await this.#put(change, expected);
      if (version !== undefined) this.#tell(tell);
      return version;
    } catch (error) {
      // It may have been written. Who is told for nothing looks, and finds nothing.
      if (error instanceof OutcomeUnknown) this.#tell(tell);
      throw error;
    }
  }

  /** Only a tombstone may be in the way. */
  async #create(change: Change): Promise<number | undefined> {
    const known = this.#tombstones.get(change.subject);
    const isThere = known !== undefined && this.#clock.monotonic() - known.at < CERTAIN_MS;
    for (let below = isThere ? known.sequence : 0, isSeen = false; ;) {
      const version = await this.#put(change, below);
      if (version !== undefined) return version;
      const last = await this.#last(change.subject);
      // Only a cell takes the place of a tombstone that was seen just now: there was one, even if it has gone again.
      if (last !== undefined && (isSeen || !isTombstone(last))) return undefined;
      isSeen = last !== undefined;
      below = last?.sequence ?? 0;
    }
  }

  /** Undefined: the last message has another sequence than this. */
  async #put(change: Change, expect: number): Promise<number | undefined> {
    const { subject, data, ttlSeconds } = change;
    const options = { expect, rollup: expect !== 0, ...(ttlSeconds === undefined ? {} : { ttlSeconds }) };
    const begun = this.#clock.monotonic();
    for (let tries = MOST_TRIES, lost = false; ; tries -= 1) {
      try {
        const result = await this.#js.put(subject, data, options);
        if (!result.refused) return result.sequence;
        if (!lost) return undefined;
      } catch (error) {
        if (!(error instanceof Lost)) throw error;
        lost = true;
      }
      // Only after a lost reply: was it this very change that was written?
      const last = await this.#last(subject);
      if (last !== undefined && nonceOf(last) === change.nonce) return last.sequence;
      // It may have been, and somebody has changed the cell since, or its time is up.
      const untouched = (last?.sequence ?? 0) === expect;
      const vanished = last === undefined && this.#clock.monotonic() - begun > CERTAIN_MS;
      if (!untouched || vanished || tries <= 1) throw new OutcomeUnknown("a change of a lock");
    }
  }

  #tell(names: readonly string[]): void {
    for (const name of names) sendUnanswered(this.#wire, this.#subjectOfListener(name), "");
  }

  #last(subject: string): Promise<Stored | undefined> {
    return this.#js.last(this.#subjects.shared, subject);
  }

  #remember(subject: string, sequence: number, at: number): void {
    for (const [oldest, tombstone] of this.#tombstones) {
      if (at - tombstone.at < CERTAIN_MS) break;
      this.#tombstones.delete(oldest);
    }
    this.#tombstones.set(subject, { sequence, at });
  }

  #subjectOf(name: string): string {
    const { kind, rest } = split(name);
    return this.#subjects.cell(kind, checkedToken(name, rest));
  }

  #subjectOfListener(name: string): string {
    const { kind, rest } = split(name);
    return this.#subjects.told(kind, checkedToken(name, rest));
  }
}

interface Change {
  readonly subject: string;
  readonly nonce: string;
  readonly data: string;
  readonly ttlSeconds: number | undefined;
}

/** The server counts in whole seconds. */
function secondsOf(ttlMs: number | undefined): number | undefined {
  return ttlMs === undefined ? undefined : Math.max(1, Math.ceil(ttlMs / 1_000));
}

function split(name: string): { readonly kind: string; readonly rest: string } {
  const at = name.indexOf("/");
  const kind = name.slice(0, Math.max(at, 0));
  if (!KIND.test(kind)) throw new InvalidInput("name", name, "a kind in lower-case letters, a slash, and more");
  return { kind, rest: name.slice(at + 1) };
}

function checkedToken(name: string, rest: string): string {
  const token = tokenOf(rest);
  if (token === "" || token.length > LONGEST_TOKEN) throw new InvalidInput("name", name, "a name of 1 to 768 bytes");
  return token;
}

function cellOf(name: string, stored: Stored): Cell | undefined {
  if (isTombstone(stored)) return undefined;
  const text = textOfBytes(stored.data);
  return { name, version: stored.sequence, value: text.slice(text.indexOf("\n") + 1) };
}

function nonceOf({ data }: Stored): string {
  const text = textOfBytes(data);
  const end = text.indexOf("\n");
  return text.slice(1, end === -1 ? undefined : end);
}

function isTombstone({ data }: Stored): boolean {
  return data[0] === TOMBSTONE.charCodeAt(0);
}
