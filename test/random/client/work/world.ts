import { SUSPECT_LOSSES } from "../../../../src/worker/solitude.ts";
import { AsyncLocalStorage } from "node:async_hooks";
import { isAway } from "../../../../src/domain/errors.ts";
import type { Engine } from "../../../../src/engine/port.ts";
import { MemoryStore } from "../../../../src/engines/memory/index.ts";
import { Random } from "../../../kit/random.ts";
import { ShiftedClock } from "../../../simulation/shifted-clock.ts";
import { VirtualTime } from "../../../simulation/virtual-time.ts";
import { Actor, workers } from "./actor.ts";
import { checkEnds } from "./check-ends.ts";
import { Notes } from "./notes.ts";
import type { Deed, Plan } from "./plan.ts";
import { CLOCK_ZERO_MS, WorkProcess } from "./process.ts";

/** Time after the last deed in which all items must have ended, and all outages. */
const DRAIN_MS = 180_000;
/** Outages that come again are told to be over after a minute at the latest. */
const QUIET_MS = 130_000;
const MOST_EVENTS = 60_000;
const LOOK_MS = 250;
/** A slot that is free takes what is ready within this time, when nothing goes wrong. */
const IDLE_LOOKS = 3;

/** One run: some processes with the real client, one store, one plan. */
export class WorkWorld {
  readonly #plan: Plan;
  readonly #time = new VirtualTime();
  readonly #store: MemoryStore;
  readonly #inspector: Engine;
  readonly #notes: Notes;
  readonly #processes: WorkProcess[] = [];
  readonly #intervals: ReadonlySet<unknown>;
  readonly #inWorld = AsyncLocalStorage.snapshot();
  readonly #open = new Set<Deed>();
  readonly #looks = new Map<string, number>();
  #events = 0;
  #isOver = false;

  /** @param intervals those that the product has set in this world, and not cleared */
  constructor(plan: Plan, intervals: ReadonlySet<unknown>) {
    this.#plan = plan;
    this.#intervals = intervals;
    const time = this.#time;
    const random = new Random(plan.seed);
    this.#store = new MemoryStore({ clock: new ShiftedClock(time, CLOCK_ZERO_MS, 0, (callback) => callback()) });
    this.#inspector = this.#store.connect();
    this.#notes = new Notes(plan.isCalm);
    for (let number = 1; number <= plan.processes; number += 1) {
      const name = `p${number}`;
      this.#processes.push(new WorkProcess(time, this.#store.connect(), name, random.fork(), plan));
    }
    let last = 0;
    for (const deed of plan.deeds) {
      last = Math.max(last, deed.at);
      time.after(deed.at, () => this.#begin(deed));
    }
    // Whatever was stopped before, in the end somebody works.
    const final: Deed = { at: last + 6_000, process: 0, kind: "worker", seed: plan.seed };
    time.after(final.at, () => this.#begin(final));
    this.#lookAround(final.at + DRAIN_MS, final.at);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  get problems(): readonly string[] {
    return this.#notes.problems;
  }

  /** One event. What follows from it happens before the next call. */
  step(): void {
    this.#notes.look(this.#time.now);
    this.#events += 1;
    const isGood = this.problems.length === 0;
    if (isGood && this.#events < MOST_EVENTS && this.#inWorld(() => this.#time.step())) return;
    if (isGood && !this.#isOver) this.#blame(`it is not over after ${this.#events} events`);
    this.#isOver = true;
  }

  #begin(deed: Deed): void {
    const process = this.#processes[deed.process];
    if (process === undefined || process.isClosing) return;
    if (deed.kind === "outage") {
      const random = new Random(deed.seed);
      process.begin(random.pick(["away", "away", "replies lost"]));
      this.#time.after(random.next() * random.pick([300, 4_000, 15_000]), () => {
        process.outage = "none";
        process.outageEndedAt = this.#time.now;
      });
      return;
    }
    this.#open.add(deed);
    const end = (): void => void this.#open.delete(deed);
    new Actor(this.#time, process, this.#notes, this.#plan, deed).play(deed.kind).then(end, (error: unknown) => {
      end();
      this.#blame(`${deed.kind} failed: ${error instanceof Error ? (error.stack ?? "") : String(error)}`);
    });
  }

  #lookAround(until: number, from: number): void {
    this.#time.after(LOOK_MS, () => {
      void this.#look().then((left) => {
        const { now } = this.#time;
        if (now > until || (now > from && left === 0 && this.#open.size === 0))
          this.#time.after(QUIET_MS, () => void this.#close(left));
        else this.#lookAround(until, from);
      });
    });
  }

  /** An item whose lease was lost twice runs alone in its process: it may wait for others to end, and others wait for it. */
  #isAnySuspect(): boolean {
    const losses = new Map<string, number>();
    for (const { events } of new Set(this.#notes.workers.map(({ process }) => process))) {
      for (const event of events)
        if (event.type === "lost") losses.set(event.item.id, (losses.get(event.item.id) ?? 0) + 1);
    }
    return [...losses.values()].some((count) => count >= SUSPECT_LOSSES);
  }

  /** Whether anybody is idle who should not be. Returns how many items have not ended. */
  async #look(): Promise<number> {
    const [report] = await this.#inspector.queues({});
    if (report === undefined) return 0;
    await this.#inspector.declare({ queue: "work" });
    const keys = await this.#inspector.keys({ queue: "work", limit: 100 });
    const isIdle = this.#notes.workers.some(
      ({ process, stopAt, runs, concurrency, startedAt }) =>
        process.outage === "none" &&
        stopAt === undefined &&
        this.#time.now > startedAt + LOOK_MS &&
        runs.filter(({ endedAt }) => endedAt === undefined).length < concurrency,
    );
    const isAlone = this.#isAnySuspect();
    for (const { key, state, paused } of keys) {
      const isReady = state === "ready" && !paused && !report.paused;
      const looks = isReady && isIdle && !isAlone && this.#plan.isCalm ? (this.#looks.get(key) ?? 0) + 1 : 0;
      this.#looks.set(key, looks);
      if (looks > IDLE_LOOKS) this.#blame(`${key} is ready, and a worker with free slots does not take it`);
    }
    return report.waiting + report.delayed + report.running;
  }

  async #close(left: number): Promise<void> {
    if (left > 0) this.#blame(`${left} items do not end`);
    const { now } = this.#time;
    for (const process of this.#processes) {
      for (const [index, event] of this.#lastTroubles(process)) {
        this.#blame(`${process.name}: ${event} is ${index}`);
      }
    }
    for (const note of this.#notes.workers) {
      const worker = workers.get(note);
      if (note.stopAt === undefined && worker !== undefined && worker.running > 0)
        this.#blame("a worker runs something in the end");
    }
    await checkEnds(this.#plan, this.#notes, this.#inspector, now);
    await Promise.all(
      this.#processes.map((process) => {
        process.isClosing = true;
        for (const note of this.#notes.workers) {
          if (note.process !== process || note.stopAt !== undefined) continue;
          note.stopAt = now;
          note.graceUntil = now;
        }
        return process.baton.close({ grace: 0 });
      }),
    );
    this.#time.after(1_000, () => this.#conclude());
  }

  /** What began and was never told to be over. */
  #lastTroubles(process: WorkProcess): readonly (readonly [string, string])[] {
    let doing: string | undefined;
    const wrong: (readonly [string, string])[] = [];
    for (const event of process.events) {
      if (event.type === "trouble" && isAway(event.error)) {
        if (event.failures === 1 && doing !== undefined) wrong.push(["told again before it was over", event.doing]);
        if (event.failures > 1 && doing === undefined) wrong.push(["told before it began", event.doing]);
        doing ??= event.doing;
      } else if (event.type === "recovered" && !this.#hasOther(process, event.doing)) {
        if (doing !== event.doing) wrong.push(["over, and was not told", event.doing]);
        doing = undefined;
      }
    }
    // Where nothing is asked that has an answer, nothing is known.
    const worked = process.events.some(({ type, at }) => type === "started" && at > process.outageEndedAt);
    if (doing !== undefined && worked) wrong.push(["never over", "an outage"]);
    return wrong;
  }

  /** What the store refuses is told apart from an outage. */
  #hasOther(process: WorkProcess, doing: string): boolean {
    return process.events.some((event) => event.type === "trouble" && event.doing === doing && !isAway(event.error));
  }

  #conclude(): void {
    for (const { kind, seed } of this.#open) this.#blame(`${kind} (deed ${seed}) never ends`);
    if (this.#intervals.size > 0)
      this.#blame(`${this.#intervals.size} intervals are left, which keep the process alive`);
    for (const { name, timers } of this.#processes) {
      if (timers.size > 0) this.#blame(`${name} has left ${timers.size} timers`);
    }
    this.#isOver = true;
  }

  #blame(says: string): void {
    this.#notes.blame(this.#time.now, says);
  }
}
