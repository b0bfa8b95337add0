import { isError } from "../domain/realms.ts";
import { type Clock, pause } from "../domain/clock.ts";
import { BatonError, OutcomeUnknown } from "../domain/errors.ts";
import type { Cell, Register } from "./register.ts";
import { concerned, keepMs, type LockRecord, withFences } from "./rules.ts";

/** A lock's record as it was at a version. Version 0: there was none. */
export interface Seen {
  readonly version: number;
  readonly record: LockRecord | undefined;
}

/** What most locks are when somebody asks for them. */
export const UNSEEN: Seen = { version: 0, record: undefined };

/** One of all locks. */
export interface Listed {
  readonly name: string;
  readonly version: number;
  /** Undefined: it cannot be read, and `damage` says why. */
  readonly record: LockRecord | undefined;
  readonly damage: Error | undefined;
}

export type Step = (record: LockRecord | undefined) => LockRecord | undefined;

interface Turn {
  readonly seen: Seen;
  /** When reading or writing it began, by a count of such events. 0: it is what somebody remembered. */
  readonly at: number;
}

const PREFIX = "lock/";
/** What one who waits listens to, by its nonce. */
const TURN_PREFIX = "turn/";
/** A store that loses so many replies in a row is better waited for than asked again. */
const MOST_UNKNOWN = 3;
/** Those who lose the race for a cell again and again spread over this time. */
const LONGEST_STEP_BACK_MS = 64;
/** Locks in use at a time by one process for which others wait; of more, the first are forgotten and read again. */
const MOST_REMEMBERED = 1_000;

/** The cells of the locks: reading, and changing by compare-and-swap until it takes. */
export class LockCells {
  readonly #register: Register;
  readonly #clock: Clock;
  readonly #random: () => number;
  /** By lock: the last of those who take turns. */
  readonly #turns = new Map<string, Promise<Turn>>();
  /** As this process last saw them: locks that others wait for. */
  readonly #remembered = new Map<string, Seen>();
  #events = 0;

  constructor(register: Register, clock: Clock, random: () => number) {
    this.#register = register;
    this.#clock = clock;
    this.#random = random;
  }

  async read(name: string): Promise<Seen> {
    const cell = await this.#register.read(cellName(name));
    return cell === undefined ? UNSEEN : { version: cell.version, record: recordIn(cell) };
  }

  /** Where a change that will be compared can begin, without asking. Whoever lets go of a lock that is wanted soon wants it again. */
  remembered(name: string): Seen | undefined {
    return this.#remembered.get(name);
  }

  /** Damage to one lock stays with that lock. */
  async list(): Promise<readonly Listed[]> {
    const cells = await this.#register.list(PREFIX);
    return cells.map((cell): Listed => {
      const name = cell.name.slice(PREFIX.length);
      try {
        return { name, version: cell.version, record: recordIn(cell), damage: undefined };
      } catch (error) {
        return { name, version: cell.version, record: undefined, damage: asError(error) };
      }
    });
  }

  /** Whoever holds it holds it no more. False: somebody was faster. */
  async remove({ name, version }: Listed): Promise<boolean> {
    const removed = await this.#register.write({ name: cellName(name), expected: version, value: undefined });
    return removed !== undefined;
  }

  watch(name: string, changed: () => void): Promise<{ stop(): void }> {
    return this.#register.watch(cellName(name), changed);
  }

  /** Tells one who waits of changes that concern it. */
  listen(nonce: string, told: () => void): Promise<{ stop(): void }> {
    return this.#register.listen(TURN_PREFIX + nonce, told);
  }

  /**
   * Applies `step` to the record until the store takes what comes out, and returns the record as it then is. `step` is asked
   * again after every lost race, and also after a lost reply, when what it wants may be there already. `unknown` is
   * called each time a reply is lost.
   *
   * Changes of one lock by this process take turns, so that they race with other processes only. Each goes on from what an
   * earlier turn has seen since this change was asked for.
   */
  async change(name: string, from: Seen | undefined, step: Step, unknown: () => void): Promise<Seen> {
    const asked = this.#next();
    const before = this.#turns.get(name);
    const turn =
      before === undefined
        ? this.#take(name, from && { seen: from, at: 0 }, step, unknown)
        : before
            .catch(() => undefined)
            .then((last) => (last !== undefined && last.at > asked ? last : from && { seen: from, at: 0 }))
            .then((start) => this.#take(name, start, step, unknown));
    this.#turns.set(name, turn);
    try {
      const { seen } = await turn;
      this.#remember(name, seen);
      return seen;
    } finally {
      if (this.#turns.get(name) === turn) this.#turns.delete(name);
    }
  }

  async #take(name: string, from: Turn | undefined, step: Step, unknown: () => void): Promise<Turn> {
    let turn = from ?? (await this.#look(name));
    let lost = 0;
    for (let attempt = 0; ; attempt += 1) {
      const record = step(turn.seen.record);
      if (record === turn.seen.record) return turn;
      const at = this.#next();
      try {
        const version = await this.#write(name, turn.seen, record);
        if (version !== undefined) return { seen: written(version, record), at };
      } catch (error) {
        if (!(error instanceof OutcomeUnknown)) throw error;
        unknown();
        lost += 1;
        if (lost === MOST_UNKNOWN) throw error;
      }
      if (attempt > 0) await pause(this.#clock, this.#random() * Math.min(2 ** attempt, LONGEST_STEP_BACK_MS));
      turn = await this.#look(name);
    }
  }

  #remember(name: string, seen: Seen): void {
    this.#remembered.delete(name);
    if (seen.record === undefined || seen.record.waiters.length === 0) return;
    this.#remembered.set(name, seen);
    const [first] = this.#remembered.keys();
    if (first !== undefined && this.#remembered.size > MOST_REMEMBERED) this.#remembered.delete(first);
  }

  async #look(name: string): Promise<Turn> {
    const at = this.#next();
    return { at, seen: await this.read(name) };
  }

  #next(): number {
    this.#events += 1;
    return this.#events;
  }

  #write(name: string, seen: Seen, record: LockRecord | undefined): Promise<number | undefined> {
    const ttlMs = record && keepMs(record);
    const tell = concerned(seen.record, record).map((nonce) => TURN_PREFIX + nonce);
    return this.#register.write({
      name: cellName(name),
      expected: seen.version,
      value: record && JSON.stringify(record),
      ...(ttlMs === undefined ? {} : { ttlMs }),
      ...(tell.length === 0 ? {} : { tell }),
      // One more in line: whoever has the lock has it still.
      isQuiet: record !== undefined && record.holders === seen.record?.holders,
    });
  }
}

/** A cell that was removed is not there, whatever the version of its removal. */
function written(version: number, record: LockRecord | undefined): Seen {
  return record === undefined ? UNSEEN : { version, record: withFences(record, version) };
}

function cellName(name: string): string {
  return PREFIX + name;
}

function recordIn({ name, version, value }: Cell): LockRecord {
  try {
    const record: unknown = JSON.parse(value);
    if (!isRecord(record)) throw new TypeError("it is no record of a lock");
    return withFences(record, version);
  } catch (error) {
    throw new BatonError(
      "STORE_CORRUPT",
      `The record of lock ${name.slice(PREFIX.length)} is damaged: somebody else wrote into it. Nobody can take or free this lock; others go on. ` +
        "Make sure that nobody holds it, then run baton doctor --repair.",
      { cause: error },
    );
  }
}

/** As much of its shape as every step relies on. */
function isRecord(value: unknown): value is LockRecord {
  if (typeof value !== "object" || value === null) return false;
  if (!("slots" in value && "holders" in value && "waiters" in value && "delays" in value)) return false;
  const lists = [value.holders, value.waiters, value.delays];
  return typeof value.slots === "number" && lists.every(isListOfObjects);
}

function isListOfObjects(value: unknown): boolean {
  return Array.isArray(value) && value.every((one) => typeof one === "object" && one !== null);
}

function asError(error: unknown): Error {
  return isError(error) ? error : new Error(String(error));
}
