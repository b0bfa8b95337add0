import { AsyncLocalStorage } from "node:async_hooks";
import { MemoryCells } from "../../../../src/engines/memory/register.ts";
import { Random } from "../../../kit/random.ts";
import { ShiftedClock } from "../../../simulation/shifted-clock.ts";
import { VirtualTime } from "../../../simulation/virtual-time.ts";
import { Actor, isLost } from "./actor.ts";
import { type Deed, LEASES_MS, LOCKS, type Plan } from "./plan.ts";
import { LockProcess } from "./process.ts";
import { Watchers } from "./watchers.ts";

/** Time after the last deed in which all of them must have come to their end. */
const DRAIN_MS = 120_000;
/** After this nothing happens any more among those who use locks, except that they wait. */
const STILL_MS = 20_000;
/** A run that needs more events than this goes in circles. */
const MOST_EVENTS = 30_000;
/** Everything that runs out has run out then, and what was remembered for an hour is not. */
const RUN_OUT_MS = 60_000;
/** Shared sessions end when they were of no use from one sign of life to the next. */
const IDLE_MS = 10_000;
/** A lease of a second, renewed a third ago, outlasts it if it is renewed soon after. */
const HICCUP_MS = 200;
const BETWEEN_HICCUPS_MS = 2_000;
/** A connection that closes gives its locks back in a few messages. */
const CLOSE_MS = 700;
const LONGEST_PAUSE = 2.5;

/** One run: some processes with the real client, one store, one plan. */
export class LockWorld {
  readonly #plan: Plan;
  readonly #inWorld = AsyncLocalStorage.snapshot();
  readonly #intervals: ReadonlySet<unknown>;
  readonly #time = new VirtualTime();
  readonly #cells: MemoryCells;
  readonly #watchers: Watchers;
  readonly #processes: LockProcess[] = [];
  readonly #open = new Set<Deed>();
  #events = 0;
  #isOver = false;

  /** @param intervals those that the product has set in this world, and not cleared */
  constructor(plan: Plan, intervals: ReadonlySet<unknown>) {
    this.#plan = plan;
    this.#intervals = intervals;
    const time = this.#time;
    const random = new Random(plan.seed);
    this.#cells = new MemoryCells(new ShiftedClock(time, 5_000_000, 0, (callback) => callback()));
    this.#watchers = new Watchers(plan.kind);
    for (let number = 1; number <= plan.processes; number += 1) {
      const isTroubled = plan.kind === "troubled" && random.chance(0.5);
      this.#processes.push(new LockProcess(time, this.#cells, `p${number}`, random.fork(), isTroubled));
    }
    let last = 0;
    for (const deed of plan.deeds) {
      last = Math.max(last, deed.at);
      time.after(deed.at, () => this.#begin(deed));
    }
    this.#lookForTheEnd(last + DRAIN_MS);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get problems(): readonly string[] {
    return this.#watchers.problems;
  }

  /** One event. What follows from it happens before the next call. */
  step(): void {
    this.#watchers.look(this.#time.now);
    this.#events += 1;
    if (this.problems.length === 0 && this.#events < MOST_EVENTS && this.#inWorld(() => this.#time.step())) return;
    if (this.problems.length === 0) this.#blame(`it is not over after ${this.#events} events`);
    this.#isOver = true;
  }

  #begin(deed: Deed): void {
    const process = this.#processes[deed.process];
    if (process === undefined || process.isDead || process.isClosing) return;
    const random = new Random(deed.seed);
    switch (deed.kind) {
      case "take away": {
        const name = random.pick([...LOCKS.keys()]);
        const cell = this.#cells.read(`lock/${name}`);
        if (cell === undefined) return;
        this.#watchers.takenAway(name, this.#time.now);
        this.#cells.write({ name: cell.name, expected: cell.version, value: undefined });
        return;
      }
      case "pause":
        process.wasPaused = true;
        return process.pause(random.next() * random.pick(LEASES_MS) * LONGEST_PAUSE);
      case "crash":
        this.#watchers.crashed(process, this.#time.now);
        return process.crash();
      case "outage":
        return this.#cutOff(process, random);
      case "close":
        return this.#track(deed, this.#close(process, random.pick([0, 1_000, 20_000])));
      default:
        return this.#track(deed, new Actor(this.#time, process, this.#watchers, deed).play(deed.kind), process);
    }
  }

  #cutOff(process: LockProcess, random: Random): void {
    const { now } = this.#time;
    const isShort = this.#plan.kind === "hiccups";
    // Two in a row are as long as both.
    if (isShort && now < process.outageEndsAt + BETWEEN_HICCUPS_MS) return;
    const forMs = isShort ? HICCUP_MS : random.next() * 4_000;
    process.wasPaused = true;
    process.isAway = true;
    process.outageEndsAt = Math.max(process.outageEndsAt, now + forMs);
    this.#time.after(forMs, () => (process.isAway = this.#time.now < process.outageEndsAt));
  }

  #track(deed: Deed, doing: Promise<void>, process?: LockProcess): void {
    this.#open.add(deed);
    if (process !== undefined) process.deeds.add(deed);
    const end = (): void => {
      this.#open.delete(deed);
      process?.deeds.delete(deed);
    };
    doing.then(end, (error: unknown) => {
      end();
      this.#blame(`${deed.kind} failed: ${error instanceof Error ? (error.stack ?? "") : String(error)}`);
    });
  }

  async #close(process: LockProcess, graceMs: number): Promise<void> {
    process.isClosing = true;
    for (const note of this.#watchers.holds) {
      if (note.process !== process) continue;
      note.isLost = note.letGoAt === undefined && isLost(note.held);
      note.letGoAt ??= this.#time.now;
    }
    const began = this.#time.now;
    await process.baton.close({ grace: graceMs });
    const tookMs = this.#time.now - began;
    if (this.#plan.kind === "calm" && graceMs === 0 && tookMs > CLOSE_MS)
      this.#blame(`closing took ${tookMs.toFixed(1)} ms`);
    for (const { held, process: its } of this.#watchers.holds) {
      if (its === process && held.leftMs > 0) this.#blame(`${held.name} is certain though its connection is closed`);
    }
    for (const note of this.#watchers.holds) if (note.process === process) note.isReleased = true;
  }

  #lookForTheEnd(until: number): void {
    this.#time.after(500, () => {
      for (const note of this.#watchers.holds) {
        if (note.letGoAt === undefined && isLost(note.held)) note.isLost = true;
      }
      const living = this.#processes.filter(({ isDead }) => !isDead);
      const open = living.flatMap(({ deeds }) => [...deeds]);
      const last = this.#plan.deeds.at(-1)?.at ?? 0;
      const isStill = this.#time.now > last + STILL_MS || (open.length === 0 && this.#time.now > last);
      if ((isStill && open.every(({ kind }) => kind === "lock" || kind === "with lock")) || this.#time.now > until) {
        // Those who forgot a lock keep others waiting until their connection closes.
        if (open.length === 0) this.#time.after(IDLE_MS, () => void this.#closeIdle(living));
        else void this.#closeAll(living);
      } else this.#lookForTheEnd(until);
    });
  }

  /** Sessions that nothing hangs on have ended by themselves. */
  async #closeIdle(living: readonly LockProcess[]): Promise<void> {
    const forgotten = this.#watchers.holds.filter(({ process, isReleased }) => !process.isDead && !isReleased);
    const sessions = this.#cells
      .list("session/")
      .filter(({ name }) => living.some((one) => name.includes(`/${one.name}.`)));
    if (forgotten.length === 0 && sessions.length > 0)
      this.#blame(`${sessions.length} sessions live that nothing hangs on`);
    await this.#closeAll(living);
  }

  async #closeAll(living: readonly LockProcess[]): Promise<void> {
    await Promise.all(living.filter(({ isClosing }) => !isClosing).map((process) => this.#close(process, 0)));
    this.#time.after(RUN_OUT_MS, () => this.#conclude(living));
  }

  #conclude(living: readonly LockProcess[]): void {
    const { now } = this.#time;
    this.#watchers.conclude(now);
    for (const process of living) {
      for (const { kind, seed } of process.deeds) this.#blame(`${process.name}: ${kind} (deed ${seed}) never ends`);
      if (this.#plan.deeds.every(({ kind }) => kind !== "crash") && this.#intervals.size > 0)
        this.#blame(`${this.#intervals.size} intervals are left, which keep the process alive`);
      if (process.timers.size > 0) this.#blame(`${process.name} has left ${process.timers.size} timers`);
    }
    // The record of a lock whose holder is gone stands until somebody wants it.
    const left = this.#cells.list("").filter(({ name }) => !name.startsWith("lock/"));
    if (left.length > 0) this.#blame(`cells are left: ${left.map(({ name, value }) => `${name} ${value}`).join(", ")}`);
    this.#isOver = true;
  }

  #blame(says: string): void {
    this.#watchers.blame(this.#time.now, says);
  }
}
