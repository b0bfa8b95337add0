import { systemClock } from "../../../src/domain/clock.ts";
import { setTimeout as wait } from "node:timers/promises";
import type { Time } from "./script.ts";

export interface Pace {
  /** Real milliseconds of one unit of a script. */
  readonly unitMs: number;
  /** What comes due may be so late. */
  readonly lateMs: number;
  /** And so late what is to be forgotten. */
  readonly forgetLateMs: number;
}

const FAR_MS = 3_600_000;
const UNITS: Readonly<Record<Time, number>> = { none: 0, soon: 0.5, later: 1.5, far: Infinity };
/** What is about to come due when a part of a script begins is waited for. */
const ROOM = 0.25;
const APART_MS = 3;

interface Due {
  /** By the clock of the timeline: when it comes due at the earliest, if it was asked for at the beginning of its part. */
  readonly from: number;
  readonly lateMs: number;
  /** The same at the latest. Undefined until its part has ended. */
  to: number | undefined;
}

/**
 * When a script is played on a real store. It is played in parts, with a pause between them. What comes due must do so
 * between two parts, wherever in its part it was asked for: then the moment decides nothing, and the answers can be held
 * against those of a model whose clock stands still in each part. If a slow machine draws a part out over such a
 * moment, the rest of the script says nothing.
 */
export class Timeline {
  readonly #pace: Pace;
  /** By the wall clock. */
  readonly zero: number = Date.now();
  readonly #zero = systemClock.monotonic();
  readonly #dues: Due[] = [];
  /** When those run out that have not. */
  #leases: number[] = [];
  #cancels = false;
  readonly #kept = new Set<Time>();
  #begun = 0;
  #lengthMs = 0;
  #longestMs = 0;
  #asked = 0;

  constructor(pace: Pace) {
    this.#pace = pace;
  }

  /** When the present part began. The model's clock shows this. */
  get at(): number {
    return this.#begun;
  }

  /** How long the longest part went on so far. */
  get longestMs(): number {
    return Math.max(this.#longestMs, this.#now() - this.#begun);
  }

  ms(time: Time): number {
    return time === "far" ? FAR_MS : UNITS[time] * this.#pace.unitMs;
  }

  /** The same for what is asked for now: what is asked for later in a part comes due later, also by whole milliseconds. */
  dueMs(time: Time): number {
    const ms = this.ms(time);
    return ms > 0 && ms < FAR_MS ? ms + this.#asked * APART_MS : ms;
  }

  /** Something else is asked. */
  ask(): void {
    this.#asked += 1;
  }

  /** Something begins in this part that is over after that time. */
  note(time: Time): void {
    this.#add(this.#begun, this.dueMs(time), this.#pace.lateMs);
  }

  /** A lease. What was to be cancelled ends when it runs out, and is forgotten some time after. */
  noteLease(time: Time): void {
    this.note(time);
    if (this.ms(time) < FAR_MS) this.#leases.push(this.#begun + this.dueMs(time));
  }

  /** What runs is to be cancelled. */
  noteCancel(): void {
    this.#cancels = true;
  }

  /** Something is submitted that is to be remembered for so long. */
  noteKept(time: Time): void {
    this.#kept.add(time);
  }

  /** It may end and be remembered for a while. */
  noteEnd(): void {
    for (const time of this.#kept) this.#add(this.#begun, this.ms(time), this.#pace.forgetLateMs);
  }

  /** By how much the wall clock has gone another way. */
  get driftMs(): number {
    return Math.abs(Date.now() - this.zero - this.#now());
  }

  /** The part goes on; false when something came due meanwhile. */
  isClear(): boolean {
    const now = this.#now();
    return !this.#dues.some(({ from, to }) => from <= now && (to === undefined || to > this.#begun));
  }

  /** Ends the part. */
  end(): void {
    this.#lengthMs = this.#now() - this.#begun;
    this.#longestMs = this.longestMs;
    for (const due of this.#dues) due.to ??= due.from + this.#lengthMs + due.lateMs;
  }

  /** From one beginning to the next there are whole units, as far as possible. */
  async pass(units: number): Promise<void> {
    const { unitMs } = this.#pace;
    await this.#until(this.#begun + unitMs * (Math.floor(this.#lengthMs / unitMs) + units));
  }

  /** Nothing is about to come due. */
  isQuiet(): boolean {
    return this.#restlessUntil() < this.#now();
  }

  async quiet(): Promise<void> {
    await this.#until(this.#restlessUntil() + 1);
  }

  /** Begins another part, while it is quiet. Says whether something has come due. */
  begin(): boolean {
    const before = this.#begun;
    this.#begun = this.#now();
    this.#asked = 0;
    const over = this.#leases.filter((at) => at <= this.#begun);
    this.#leases = this.#leases.filter((at) => at > this.#begun);
    // Some stores find that a lease has run out when it has, others when they are asked next.
    for (const time of this.#cancels ? this.#kept : []) {
      for (const at of over) this.#add(at, this.ms(time), this.#pace.forgetLateMs);
    }
    if (over.length > 0 && this.#cancels) this.noteEnd();
    return this.#dues.some(({ from }) => from > before && from <= this.#begun);
  }

  #restlessUntil(): number {
    const soon = this.#now() + ROOM * this.#pace.unitMs;
    return Math.max(0, ...this.#dues.filter(({ from }) => from < soon).map(({ to = 0 }) => to));
  }

  #add(begun: number, ms: number, lateMs: number): void {
    const from = begun + ms;
    const isKnown = this.#dues.some((due) => due.to === undefined && due.from === from && due.lateMs === lateMs);
    if (ms > 0 && ms < FAR_MS && !isKnown) this.#dues.push({ from, lateMs, to: undefined });
  }

  async #until(at: number): Promise<void> {
    while (this.#now() < at) await wait(Math.max(1, Math.ceil(at - this.#now())));
  }

  #now(): number {
    return systemClock.monotonic() - this.#zero;
  }
}
