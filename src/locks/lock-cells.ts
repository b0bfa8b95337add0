import { type Clock, pause } from "../domain/clock.ts";
import { BatonError, OutcomeUnknown } from "../domain/errors.ts";
import type { Cell, Register } from "./register.ts";
import { keepMs, type LockRecord, withFences } from "./rules.ts";

/** A lock's record as it was at a version. Version 0: there was none. */
export interface Seen {
  readonly version: number;
  readonly record: LockRecord | undefined;
}

/** What most locks are when somebody asks for them. */
export const UNSEEN: Seen = { version: 0, record: undefined };

const PREFIX = "lock/";
/** A store that loses so many replies in a row is better waited for than asked again. */
const MOST_UNKNOWN = 3;
/** Those who lose the race for a cell again and again spread over this time. */
const LONGEST_STEP_BACK_MS = 64;

/** The cells of the locks: reading, and changing by compare-and-swap until it takes. */
export class LockCells {
  readonly #register: Register;
  readonly #clock: Clock;
  readonly #random: () => number;

  constructor(register: Register, clock: Clock, random: () => number) {
    this.#register = register;
    this.#clock = clock;
    this.#random = random;
  }

  async read(name: string): Promise<Seen> {
    const cell = await this.#register.read(cellName(name));
    return cell === undefined ? UNSEEN : { version: cell.version, record: recordIn(cell) };
  }

  async list(): Promise<readonly { readonly name: string; readonly record: LockRecord }[]> {
    const cells = await this.#register.list(PREFIX);
    return cells.map((cell) => ({ name: cell.name.slice(PREFIX.length), record: recordIn(cell) }));
  }

  watch(name: string, changed: () => void): Promise<{ stop(): void }> {
    return this.#register.watch(cellName(name), changed);
  }

  /**
   * Applies `step` to the record until the store takes what comes out, and returns the record as it then is. `step` is asked
   * again after every lost race, and also after a lost reply, when what it wants may be there already. `unknown` is
   * called each time a reply is lost.
   */
  async change(
    name: string,
    from: Seen | undefined,
    step: (record: LockRecord | undefined) => LockRecord | undefined,
    unknown: () => void,
  ): Promise<Seen> {
    let seen = from ?? (await this.read(name));
    let lost = 0;
    for (let attempt = 0; ; attempt += 1) {
      const record = step(seen.record);
      if (record === seen.record) return seen;
      try {
        const version = await this.#write(name, seen.version, record);
        if (version !== undefined) return { version, record: record && withFences(record, version) };
      } catch (error) {
        if (!(error instanceof OutcomeUnknown)) throw error;
        unknown();
        lost += 1;
        if (lost === MOST_UNKNOWN) throw error;
      }
      if (attempt > 0) await pause(this.#clock, this.#random() * Math.min(2 ** attempt, LONGEST_STEP_BACK_MS));
      seen = await this.read(name);
    }
  }

  #write(name: string, expected: number, record: LockRecord | undefined): Promise<number | undefined> {
    const ttlMs = record && keepMs(record);
    return this.#register.write({
      name: cellName(name),
      expected,
      value: record && JSON.stringify(record),
      ...(ttlMs === undefined ? {} : { ttlMs }),
    });
  }
}

function cellName(name: string): string {
  return PREFIX + name;
}

function recordIn({ name, version, value }: Cell): LockRecord {
  try {
    // Its shape is what our own processes wrote.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return withFences(JSON.parse(value) as LockRecord, version);
  } catch (error) {
    throw new BatonError(
      "STORE_CORRUPT",
      `The record of lock ${name.slice(PREFIX.length)} cannot be read. Nobody can take or free this lock. ` +
        `Make sure that nobody holds it, then remove the cell ${name} from the store.`,
      { cause: error },
    );
  }
}
