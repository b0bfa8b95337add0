/**
 * Everything that this process asks of one queue goes over its desk. What is asked for within a turn of the event loop, or while calls are
 * under way, goes as one call; claims that wait go along with each, and are served by what the others set free.
 */
import { type Clock, type Instant, instant, pause } from "../../domain/clock.ts";
import { OutcomeUnknown, QueueMissing } from "../../domain/errors.ts";
import { isError } from "../../domain/realms.ts";
import { DAMAGED_KEY, explain, MISSING_QUEUE, isLater, isUnknown, unavailable, wordOf } from "./failure.ts";
import { PATIENCE_MS, TRY_AGAIN_MS } from "./patience.ts";
import { type Answer, readAnswer } from "./replies.ts";
import { makeCall, type Moment, type Operation } from "./call.ts";
import { WHOLE_PROGRAM, WORK_PROGRAM } from "./lua/program.ts";
import { Script } from "./script.ts";
import type { Signals } from "./signals.ts";
import type { Wire } from "./client.ts";

/** A call with so many entries keeps the server for two milliseconds. */
export const MOST_ENTRIES = 128;
/** The most keys of one claim. So many that the server has the next call to work on while this process is at the second half of them. */
export const MOST_GRANTS: number = 2 * MOST_ENTRIES;
/** Fewer than this are not worth two calls, each of which costs the server as much as five entries. */
const FEWEST_ENTRIES = 32;
const MOST_BYTES = 1_000_000;
/** While the server works on one call, the next is made ready and sent. */
const MOST_UNDER_WAY = 3;
/** A server that has not answered by then will not; whether it did what it was asked is unknown. */
const ANSWER_MS = 20_000;

const WORK = new Script(WORK_PROGRAM);
const WHOLE = new Script(WHOLE_PROGRAM);
/** Those that make leases. */
const TAKING = new Set(["claim", "hold"]);
/** Those about leases, which need not keep their place behind what is submitted. */
const PASSING = new Set(["hold", "unwant", "renew", "settle", "recall"]);

/** Claims, which go along with whatever is sent: those that are not under way. */
export interface Companions {
  take(): readonly Operation[];
}

export interface DeskParts {
  readonly name: string;
  readonly wire: Wire;
  readonly clock: Clock;
  readonly keys: readonly string[];
  readonly levels: readonly string[];
  /** Of this process, to tell its calls from those of others. */
  readonly nonce: string;
  readonly signals: Signals;
  readonly companions: Companions;
  readonly onAnswer: (answer: Answer) => void;
  /** The queue was deleted. */
  readonly onMissing: (error: QueueMissing) => void;
}

export class Desk {
  readonly #parts: DeskParts;
  readonly #levels: string;
  readonly #asked: Operation[] = [];
  readonly #passing: Operation[] = [];
  /**
   * Keys with submissions under way. More for them are not sent before the answer: a server that refuses a call for a moment, while it
   * loads its data for instance, may do the one behind it, and items would be overtaken when the first call is sent again.
   */
  readonly #keysUnderWay = new Set<string>();
  #looks = false;
  #isScheduled = false;
  #underWay = 0;
  #calls = 0;
  readonly #onQuiet = new Set<() => void>();

  constructor(parts: DeskParts) {
    this.#parts = parts;
    this.#levels = JSON.stringify(parts.levels);
  }

  /** One operation, and its result with the time from which it counts. */
  ask<T>(
    what: string,
    args: readonly string[],
    read: (result: unknown, moment: Moment) => T,
    rest: Pick<Operation, "alone" | "entries" | "grows" | "looks" | "submissions"> = {},
  ): Promise<T> {
    return new Promise((resolve, reject) => {
      const answer = (result: unknown, moment: Moment): void => {
        try {
          resolve(read(result, moment));
        } catch (error) {
          reject(isError(error) ? error : new Error(String(error)));
        }
      };
      this.send({ what, args, ...rest, answer, fail: reject });
    });
  }

  send(operation: Operation): void {
    if (operation.alone === true) return void this.#send([operation]);
    (PASSING.has(operation.args[0] ?? "") ? this.#passing : this.#asked).push(operation);
    // Worth a call of its own: the server works on it while the rest of this turn goes on.
    if ((operation.entries ?? 1) >= FEWEST_ENTRIES) this.#pump();
    else this.#schedule();
  }

  /** Sends the claims that wait, also when nothing else is to be sent. */
  look(): void {
    this.#looks = true;
    this.#schedule();
  }

  /** Resolves when nothing is under way. */
  async quiet(): Promise<void> {
    while (this.#underWay > 0 || this.#isAsked) {
      await new Promise<void>((resolve) => {
        this.#onQuiet.add(resolve);
      });
    }
  }

  get #isAsked(): boolean {
    return this.#asked.length > 0 || this.#passing.length > 0;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#pump();
    });
  }

  #pump(): void {
    while (this.#underWay < MOST_UNDER_WAY && (this.#isAsked || this.#looks)) {
      const operations = this.#take();
      this.#looks = false;
      const all = [...operations, ...this.#parts.companions.take()];
      if (all.length === 0) break;
      this.#underWay += 1;
      for (const { submissions = [] } of operations) for (const { key } of submissions) this.#keysUnderWay.add(key);
      void this.#send(all).finally(() => {
        this.#underWay -= 1;
        for (const { submissions = [] } of operations) {
          for (const { key } of submissions) this.#keysUnderWay.delete(key);
        }
        this.#pump();
        for (const tell of this.#onQuiet) tell();
        this.#onQuiet.clear();
      });
    }
  }

  /** Submissions that have to wait hold up what was asked for after them, except for what passes. Neither line takes the other's room. */
  #take(): Operation[] {
    const taken: Operation[] = [];
    const most = this.#mostEntries();
    for (const line of [this.#asked, this.#passing]) {
      let entries = 0;
      let bytes = 0;
      let count = 0;
      for (const operation of line) {
        if (operation.submissions?.some(({ key }) => this.#keysUnderWay.has(key)) === true) break;
        entries += operation.entries ?? 1;
        if (operation.grows === true) bytes += sizeOf(operation);
        if (count > 0 && (entries > most || bytes > MOST_BYTES)) break;
        count += 1;
      }
      taken.push(...line.splice(0, count));
    }
    return taken;
  }

  /** The first call takes half of what waits, so that there is a second for the server to work on while this process reads the first answer. */
  #mostEntries(): number {
    const half = Math.ceil(this.#asked.length / 2);
    return this.#underWay > 0 ? MOST_ENTRIES : Math.min(Math.max(half, FEWEST_ENTRIES), MOST_ENTRIES);
  }

  async #send(operations: readonly Operation[]): Promise<void> {
    const begun = this.#parts.clock.monotonic();
    let left = operations;
    while (left.length > 0) {
      const since = await this.#ready(begun);
      try {
        if (since === undefined) throw unavailable(undefined);
        const call = makeCall(left, this.#parts.levels);
        const answer = readAnswer(await this.#run(left, call.args));
        call.tell(answer.results, { since, at: answer.at });
        return this.#parts.onAnswer(answer);
      } catch (error) {
        // It is about one key, and nothing was done: the others are asked for by themselves.
        if (wordOf(error) === DAMAGED_KEY && left.length > 1) {
          for (const one of left) await this.#send([one]);
          return;
        }
        left = await this.#afterFailure(left, error, begun);
      }
    }
  }

  /** Returns what is to be sent again. */
  async #afterFailure(operations: readonly Operation[], error: unknown, begun: number): Promise<readonly Operation[]> {
    if (wordOf(error) === MISSING_QUEUE) {
      const missing = new QueueMissing(this.#parts.name);
      for (const operation of operations) operation.fail(missing);
      this.#parts.onMissing(missing);
      return [];
    }
    const { wire, clock } = this.#parts;
    const isPatient = !wire.isClosed && clock.monotonic() - begun < PATIENCE_MS;
    if (isPatient && isLater(error)) {
      await pause(clock, TRY_AGAIN_MS);
      return operations;
    }
    const again = new Set<Operation>(
      isPatient && isUnknown(error) ? operations.filter(({ looks }) => looks === true) : spared(operations, error),
    );
    for (const operation of operations) {
      if (!again.has(operation)) operation.fail(explain(error, operation.what, operation.looks));
    }
    return [...again];
  }

  /** From when leases count, read right before they are asked for; undefined if the server stays away. */
  async #ready(begun: number): Promise<Instant | undefined> {
    const { wire, clock } = this.#parts;
    while (!wire.isReady) {
      if (wire.isClosed) return undefined;
      const leftMs = PATIENCE_MS - (clock.monotonic() - begun);
      if (leftMs <= 0) return undefined;
      const { promise, resolve } = Promise.withResolvers<void>();
      const forget = wire.onReady(resolve);
      const timer = clock.setTimer(leftMs, resolve);
      await promise;
      timer.cancel();
      forget();
    }
    return instant(clock);
  }

  async #run(operations: readonly Operation[], asked: readonly string[]): Promise<unknown> {
    const { wire, clock, keys, signals, nonce } = this.#parts;
    const grows = operations.some(isGrowing);
    const isWork = operations.every(
      ({ submissions, args: [name = ""] }) => submissions !== undefined || name === "claim" || PASSING.has(name),
    );
    const script = isWork ? WORK : WHOLE;
    this.#calls += 1;
    const call = `${nonce}${this.#calls}`;
    const args = [this.#levels, grows ? "0" : "1", signals.published ? "1" : "0", call, ...asked];
    const { promise: silence, reject } = Promise.withResolvers<never>();
    const timer = clock.setTimer(ANSWER_MS, () => reject(new OutcomeUnknown("a call to Redis")));
    try {
      return await Promise.race([script.run(wire, keys, args), silence]);
    } catch (error) {
      if (isUnknown(error) && operations.some(({ args: [name = ""] }) => TAKING.has(name))) this.#recall(call);
      throw error;
    } finally {
      timer.cancel();
    }
  }

  /** What the call was given, if it was, goes back at once, instead of when its leases run out. If this fails too, it is then. */
  #recall(call: string): void {
    this.#passing.unshift({ what: "a recall", args: ["recall", call], answer: ignore, fail: ignore });
  }
}

function ignore(): void {
  // What nobody waits for.
}

function isGrowing(operation: Operation): boolean {
  return operation.grows === true;
}

/** A store that is full still lets work end: what would make it larger is refused alone. */
function spared(operations: readonly Operation[], error: unknown): readonly Operation[] {
  const isFull = wordOf(error) === "OOM" && operations.some(isGrowing);
  return isFull ? operations.filter((operation) => !isGrowing(operation)) : [];
}

function sizeOf({ submissions, args }: Operation): number {
  let size = 0;
  for (const one of args) size += one.length;
  for (const { key, payload } of submissions ?? []) size += key.length + payload.body.length;
  return size;
}
