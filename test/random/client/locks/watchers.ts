/** What is true of all holds of all processes at every moment, and in the end. */
import { leaseMarginMs } from "../../../../src/domain/lease.ts";
import type { HeldLock } from "../../../../src/client/locks/hold.ts";
import { LOCKS, type Plan } from "./plan.ts";
import type { LockProcess } from "./process.ts";

export interface HoldNote {
  readonly process: LockProcess;
  readonly held: HeldLock;
  readonly leaseMs: number;
  readonly delayMs: number;
  readonly from: number;
  /** Its owner has asked for its release, or for the end of what it hangs on. */
  letGoAt: number | undefined;
  isReleased: boolean;
  /** When its time was found to be over with no word of it. */
  silentSince: number | undefined;
  isLost: boolean;
  /** By the last look. */
  certainUntil: number;
}

export interface WaitNote {
  readonly process: LockProcess;
  readonly name: string;
  readonly askedAt: number;
  /** Whether nothing but its turn ends it. */
  readonly isPatient: boolean;
  endedAt: number | undefined;
  grantedAt: number | undefined;
}

/** What is told is told by a timer of whole milliseconds. */
const TELL_MS = 3;
/** A hand-over takes a few messages of 10 ms at most, and a few lost races; closing a session takes a few more. */
const PROMPT_MS = 600;
/** Two who ask so shortly one after the other may overtake one another on their way. */
const APART_MS = 250;
const ROUNDING_MS = 2;
/** A grant that was made before may be answered after. */
const ON_ITS_WAY_MS = 100;

export class Watchers {
  readonly holds: HoldNote[] = [];
  readonly waits: WaitNote[] = [];
  readonly problems: string[] = [];
  readonly isCalm: boolean;
  /** Nothing happens that a lease does not outlast. */
  readonly #isSteady: boolean;
  /** By lock: nobody gets it before. */
  readonly #notBefore = new Map<string, number>();
  readonly #takenAt = new Map<string, number>();
  readonly #freeSince = new Map<string, number>();
  readonly #done = new Set<number>();
  readonly #lastFence = new Map<string, number>();

  constructor(kind: Plan["kind"]) {
    this.isCalm = kind === "calm";
    this.#isSteady = kind === "calm" || kind === "hiccups";
  }

  blame(at: number, says: string): void {
    this.problems.push(`at ${at.toFixed(1)} ms: ${says}`);
  }

  granted(note: HoldNote): HoldNote {
    const { held, from, process, leaseMs } = note;
    const { name, fence, leftMs } = held;
    const earliest = this.#notBefore.get(name) ?? 0;
    if (from < earliest - ROUNDING_MS) this.blame(from, `${process.name} got ${name} before ${earliest.toFixed(1)} ms`);
    // An answer that was long on its way may be overtaken by the next holder's; what it grants is over by then.
    if (leftMs > 0 && LOCKS.get(name) === 1 && fence <= (this.#lastFence.get(name) ?? 0))
      this.blame(from, `fence ${fence} of ${name} came after fence ${this.#lastFence.get(name) ?? 0}`);
    this.#lastFence.set(name, Math.max(fence, this.#lastFence.get(name) ?? 0));
    if (leftMs > leaseMs - leaseMarginMs(leaseMs)) this.blame(from, `${name} is certain for longer than its lease`);
    this.holds.push(note);
    return note;
  }

  /** It was let go, and nobody is to have it before. */
  retired(name: string, until: number): void {
    if (LOCKS.get(name) === 1) this.#notBefore.set(name, until);
  }

  /** A task of a walk, which is remembered for longer than a run. */
  done(task: number, at: number): void {
    if (this.isCalm && this.#done.has(task)) this.blame(at, `task ${task} was done twice`);
    this.#done.add(task);
  }

  takenAway(name: string, at: number): void {
    this.#takenAt.set(name, at);
    this.#notBefore.delete(name);
  }

  crashed(process: LockProcess, at: number): void {
    for (const { held, delayMs, isReleased, letGoAt } of this.holds.filter((one) => one.process === process)) {
      if (isReleased || letGoAt !== undefined || held.leftMs <= 0 || LOCKS.get(held.name) !== 1) continue;
      if (at - (this.#takenAt.get(held.name) ?? -Infinity) < 10_000) continue;
      this.#notBefore.set(held.name, Math.max(this.#notBefore.get(held.name) ?? 0, at + held.leftMs + delayMs));
    }
  }

  /** After each event. */
  look(at: number): void {
    const certain = new Map<string, HoldNote[]>();
    for (const note of this.holds) {
      const { held, process, isReleased, letGoAt } = note;
      if (isReleased || process.isDead) continue;
      if (held.leftMs > 0) {
        const certainUntil = at + held.leftMs;
        // A slow way to the store asks for a larger margin, and for no more than that.
        if (certainUntil < note.certainUntil - note.leaseMs / 6)
          this.blame(at, `${held.name} is certain for less time than before`);
        note.certainUntil = Math.max(note.certainUntil, certainUntil);
        if (letGoAt === undefined) certain.set(held.name, [...(certain.get(held.name) ?? []), note]);
        continue;
      }
      if (letGoAt !== undefined || held.signal.aborted || process.isPaused) {
        note.silentSince = undefined;
        continue;
      }
      note.silentSince ??= at;
      if (at - note.silentSince > TELL_MS)
        this.blame(at, `${process.name} is not told that ${held.name} (fence ${held.fence}) is lost`);
    }
    for (const [name, slots] of LOCKS) {
      const those = certain.get(name) ?? [];
      const takenAt = this.#takenAt.get(name);
      const told = those.filter(
        ({ from, leaseMs }) => takenAt === undefined || from > takenAt + ON_ITS_WAY_MS || at > takenAt + leaseMs / 2,
      );
      if (told.length > slots)
        this.blame(
          at,
          `${told.length} hold ${name}: ${told.map(({ held, process }) => `${process.name} ${held.fence}`).join(", ")}`,
        );
      for (const { held, from, process, leaseMs } of takenAt === undefined ? [] : those) {
        if (from < (takenAt ?? 0) && at > (takenAt ?? 0) + leaseMs)
          this.blame(at, `${process.name} is not told that ${name} (fence ${held.fence}) was taken away`);
      }
      if (this.isCalm) this.#lookForTheIdle(name, slots, at);
    }
  }

  /** Somebody waits, and a slot has been free for long. */
  #lookForTheIdle(name: string, slots: number, at: number): void {
    const held = this.holds.filter((one) => one.held.name === name && !one.isReleased).length;
    const isKept = at < (this.#notBefore.get(name) ?? 0) + PROMPT_MS;
    const waits = this.waits.some(
      (one) => one.name === name && one.endedAt === undefined && at - one.askedAt > PROMPT_MS,
    );
    if (held >= slots || isKept || !waits) {
      this.#freeSince.delete(name);
      return;
    }
    const since = this.#freeSince.get(name) ?? at;
    this.#freeSince.set(name, since);
    if (at - since <= PROMPT_MS) return;
    this.blame(at, `${name} is free, and those who wait for it are not served`);
    this.#freeSince.set(name, Infinity);
  }

  conclude(at: number): void {
    if (this.isCalm) this.#checkOrder();
    const processes = new Set(this.holds.map(({ process }) => process));
    for (const process of processes) {
      if (!process.isDead) this.#checkEvents(process, at);
    }
  }

  #checkOrder(): void {
    for (const later of this.waits) {
      if (later.grantedAt === undefined) continue;
      for (const earlier of this.waits) {
        if (earlier.name !== later.name || !earlier.isPatient || earlier.askedAt > later.askedAt - APART_MS) continue;
        // Answers may overtake one another by a few messages.
        if ((earlier.grantedAt ?? Infinity) <= later.grantedAt + APART_MS) continue;
        if (earlier.process.isClosing) continue;
        this.blame(
          later.grantedAt,
          `${later.process.name} got ${later.name} before ${earlier.process.name}, who had come before`,
        );
      }
    }
  }

  /** What was acquired, let go and lost is told once. */
  #checkEvents(process: LockProcess, at: number): void {
    if (this.#isSteady && process.events.some(({ type }) => type === "session-lost"))
      this.blame(at, `${process.name} lost a session that outlasts what happened`);
    const terms = (type: "elected" | "deposed"): string =>
      process.events
        .flatMap((event) => (event.type === type ? [event.fence] : []))
        .toSorted((a, b) => a - b)
        .join(", ");
    if (terms("elected") !== terms("deposed"))
      this.blame(at, `${process.name} was elected for ${terms("elected")}, and deposed for ${terms("deposed")}`);
    for (const name of LOCKS.keys()) {
      const holds = this.holds.filter((one) => one.process === process && one.held.name === name);
      const told = (type: "locked" | "unlocked" | "lock-lost"): number[] =>
        process.events.flatMap((event) => (event.type === type && event.lock === name ? [event.fence] : []));
      for (const { held, isReleased } of holds) {
        const { fence } = held;
        const times = (type: Parameters<typeof told>[0]): number => told(type).filter((one) => one === fence).length;
        if (times("locked") !== 1)
          this.blame(at, `that ${name} (fence ${fence}) is locked was told ${times("locked")} times`);
        if (times("unlocked") > 1 || (isReleased && times("unlocked") + times("lock-lost") > 1))
          this.blame(at, `that ${name} (fence ${fence}) is unlocked was told ${times("unlocked")} times`);
      }
      const lost = holds.filter((one) => one.isLost).length;
      const sessions = process.events.filter((event) => event.type === "session-lost");
      const said =
        told("lock-lost").length + sessions.flatMap(({ locks }) => locks).filter((one) => one === name).length;
      // One that was lost while nobody had it in hand yet is told as well.
      if (said < lost || (this.isCalm && said > lost))
        this.blame(at, `${process.name} lost ${name} ${lost} times, and was told ${said} times`);
    }
  }
}
