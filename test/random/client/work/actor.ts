/** One deed of a run: what an application does with a queue. */
import { getEventListeners } from "node:events";
import { LockBusy } from "../../../../src/client/locks/lock-busy.ts";
import { PartlyRefused } from "../../../../src/client/partly-refused.ts";
import { Receipt } from "../../../../src/client/receipt.ts";
import type { Worker, WorkOptions } from "../../../../src/client/worker.ts";
import { type BatonError, Fatal, LeaseLost, RetryLater } from "../../../../src/domain/errors.ts";
import { parseRetry } from "../../../../src/domain/retry.ts";
import { parseQueueOptions } from "../../../../src/domain/settings.ts";
import type { WorkItem } from "../../../../src/worker/handler.ts";
import type { HeldLease } from "../../../../src/worker/held-item.ts";
import { Random } from "../../../kit/random.ts";
import type { VirtualTime } from "../../../simulation/virtual-time.ts";
import { codeOf, type Notes, type RunNote, type WorkerNote } from "./notes.ts";
import { type Deed, drawAct, drawRetry, LATER_MS, PAYLOAD_LIMIT, type Plan } from "./plan.ts";
import type { WorkProcess } from "./process.ts";

const KEYS = ["a", "b", "c", "d"];
/** A handler that has not ended then is left alone. */
const ABORT_WAIT_MS = 6_000;
const SLACK_MS = 300;

export class Actor {
  readonly #time: VirtualTime;
  readonly #process: WorkProcess;
  readonly #notes: Notes;
  readonly #plan: Plan;
  readonly #random: Random;

  constructor(time: VirtualTime, process: WorkProcess, notes: Notes, plan: Plan, deed: Deed) {
    this.#time = time;
    this.#process = process;
    this.#notes = notes;
    this.#plan = plan;
    this.#random = new Random(deed.seed);
  }

  async play(kind: Deed["kind"]): Promise<void> {
    switch (kind) {
      case "submit":
        return await this.#submit();
      case "cancel":
        return await this.#cancel();
      case "pause":
        return await this.#pause();
      case "worker":
        return void this.startWorker(false);
      case "until empty":
        return await this.#untilEmpty();
      case "stop":
        return await this.#stop();
      case "take":
        return await this.#take();
      case "hold":
        return await this.#hold();
      case "outage":
    }
  }

  startWorker(untilEmpty: boolean): { readonly worker: Worker; readonly note: WorkerNote } {
    const random = this.#random;
    const retry = random.chance(0.4) ? drawRetry(random) : undefined;
    const lease = random.chance(0.3) ? random.pick([800, 2_000]) : undefined;
    const timeout = random.chance(0.25) ? random.pick([100, 700, 2_500]) : undefined;
    const concurrency = random.between(1, 4);
    const options: WorkOptions = { concurrency, retry, lease, timeout, untilEmpty };
    const defaults = parseQueueOptions(this.#plan.queue);
    const note: WorkerNote = {
      process: this.#process,
      concurrency,
      retry: retry === undefined ? defaults.retry : parseRetry(retry),
      timeoutMs: timeout,
      leaseMs: lease ?? defaults.leaseMs,
      runs: [],
      startedAt: this.#time.now,
      stopAt: undefined,
      graceUntil: Infinity,
      report: undefined,
      stoppedAt: undefined,
    };
    const worker = this.#process.queue.work((item, held) => this.#handle(note, item, held), options);
    this.#notes.workers.push(note);
    workers.set(note, worker);
    worker.stopped.then(
      (report) => {
        note.report = report;
        note.stoppedAt = this.#time.now;
        note.stopAt ??= this.#time.now;
      },
      () => undefined,
    );
    return { worker, note };
  }

  async #submit(): Promise<void> {
    const random = this.#random;
    const many = Array.from({ length: random.pick([1, 1, 1, 3]) }, () => {
      const token = random.between(1, 0x7fff_ffff);
      const isTwin = random.chance(0.1);
      const id = random.chance(0.5) ? `id-${isTwin ? random.between(1, 3) : token}` : undefined;
      const options = {
        ...(id === undefined ? {} : { id }),
        ...(random.chance(0.2) ? { level: random.pick(["high", "normal", "low"]) } : {}),
        ...(random.chance(0.2) ? { delay: random.pick([100, 2_000]) } : {}),
        ...(random.chance(0.1) ? { mode: random.pick(["fifo", "latest", "strict"] as const) } : {}),
      };
      return { key: random.pick(KEYS.slice(0, random.pick([1, 4]))), payload: token, options };
    });
    const { queue } = this.#process;
    const before = this.#time.now;
    try {
      const [first] = many;
      const answers: readonly (Receipt | BatonError)[] =
        many.length === 1 && first !== undefined
          ? [await queue.submit(first.key, first.payload, first.options)]
          : await queue
              .submitMany(many.map(({ options, ...one }) => ({ ...one, ...options })))
              .catch((error: unknown) => {
                if (error instanceof PartlyRefused) return error.results;
                throw error;
              });
      for (const [index, answer] of answers.entries()) {
        const one = many[index];
        if (one === undefined || !(answer instanceof Receipt)) continue;
        for (const replaced of answer.replaced) {
          const other = this.#notes.items.get(replaced);
          if (other !== undefined) other.isReplaced = true;
        }
        const known = this.#notes.items.get(answer.id);
        if (answer.duplicate !== (known !== undefined) && this.#notes.isCalm && !this.#overlaps(answer.id))
          this.#blame(`${answer.id} is ${answer.duplicate ? "a" : "no"} duplicate`);
        if (answer.duplicate) continue;
        if (known !== undefined) this.#blame(`${answer.id} was accepted twice`);
        this.#notes.items.set(answer.id, {
          id: answer.id,
          token: one.payload,
          key: one.key,
          dueAt: before + (one.options.delay ?? 0),
          isPlain: one.options.level === undefined && one.options.delay === undefined && one.options.mode === undefined,
          submittedAt: before,
          acceptedAt: this.#time.now,
          cancels: [],
          isReplaced: false,
        });
        if (random.chance(0.3)) void this.#awaitOutcome(answer);
      }
    } catch (error) {
      if (!["KEY_BUSY", "KEY_FULL", "QUEUE_FULL", "PARTLY_REFUSED"].includes(codeOf(error) ?? "")) this.#expect(error);
    }
  }

  /** Two submissions of one id that were under way at once. */
  #overlaps(id: string): boolean {
    return id.startsWith("id-") && id.length < 6;
  }

  async #awaitOutcome(receipt: Receipt): Promise<void> {
    try {
      const { state } = await receipt.outcome();
      const found = await this.#process.queue.item(receipt.id);
      if (found?.outcome?.state !== state)
        this.#blame(`the outcome of ${receipt.id} is ${state}, and it is ${found?.outcome?.state ?? "?"}`);
    } catch (error) {
      this.#expect(error);
    }
  }

  async #cancel(): Promise<void> {
    const known = [...this.#notes.items.values()];
    if (known.length === 0) return;
    // The newest are those that may still wait or run.
    const item = this.#random.pick(known.slice(-4));
    const asked = { at: Infinity, answer: "unknown" };
    item.cancels.push(asked);
    try {
      asked.answer = await this.#process.queue.cancel(item.id);
      asked.at = this.#time.now;
    } catch (error) {
      this.#expect(error);
    }
  }

  async #pause(): Promise<void> {
    const key = this.#random.chance(0.5) ? this.#random.pick(KEYS) : undefined;
    try {
      await this.#process.queue.pause(key);
      await this.#process.sleep(this.#random.next() * 2_000);
    } catch (error) {
      this.#expect(error);
    }
    for (;;) {
      try {
        return await this.#process.queue.resume(key);
      } catch (error) {
        if (this.#process.isClosing || codeOf(error) === "CLOSED") return;
        this.#expect(error);
        await this.#process.sleep(100);
      }
    }
  }

  async #untilEmpty(): Promise<void> {
    const { worker } = this.startWorker(true);
    try {
      await worker.stopped;
      const report = await this.#process.baton.queues().catch(() => []);
      const { waiting = 0, delayed = 0, running = 0 } = report.find(({ queue }) => queue === "work") ?? {};
      const { now } = this.#time;
      // What is being submitted may be in the store before its answer is here.
      const isNews =
        [...this.#notes.items.values()].some(({ dueAt }) => dueAt > now - 600) ||
        this.#plan.deeds.some(({ kind, at }) => kind === "submit" && at <= now && at > now - 600);
      const stopped = this.#notes.workers.find((note) => workers.get(note) === worker);
      // Something may have come since it looked: a hold counts as what runs.
      const isHeld = this.#plan.deeds.some((deed) => deed.kind === "hold");
      if (
        waiting + delayed + (isHeld ? 0 : running) > 0 &&
        !isNews &&
        stopped?.graceUntil === Infinity &&
        !this.#process.isClosing
      )
        this.#blame(`a worker ends when all is done, and ${waiting} wait, ${delayed} are delayed and ${running} run`);
    } catch (error) {
      this.#expect(error);
    }
  }

  async #stop(): Promise<void> {
    const note = this.#notes.workers.find(({ process, stopAt }) => process === this.#process && stopAt === undefined);
    if (note === undefined) return;
    if (this.#random.chance(0.5)) {
      // A grant that races with the stop goes back untouched.
      void this.#submit();
      await this.#process.sleep(this.#random.between(0, 20));
    }
    if (note.stopAt === undefined)
      await this.stop(
        note,
        this.#random.pick([0, 300, 20_000]),
        this.#random.chance(0.4) ? this.#random.pick([0, 500]) : undefined,
      );
  }

  async stop(note: WorkerNote, graceMs: number, secondMs?: number): Promise<void> {
    const worker = workers.get(note);
    if (worker === undefined) return;
    const at = this.#time.now;
    const eventsBefore = this.#process.events.length;
    note.stopAt = at;
    note.graceUntil = at + graceMs;
    const atStop = note.runs.filter(({ endedAt }) => endedAt === undefined);
    const stopping = worker.stop({ grace: graceMs });
    if (secondMs !== undefined) {
      await this.#process.sleep(50);
      note.graceUntil = Math.min(note.graceUntil, this.#time.now + secondMs);
      void worker.stop({ grace: secondMs });
    }
    const report = await stopping;
    const { finished, released, abandoned } = report;
    if (worker.running > 0 !== note.runs.some(({ endedAt }) => endedAt === undefined))
      this.#blame(`a worker says that ${worker.running} run`);
    const sum = finished + released + abandoned;
    if (sum < atStop.length) this.#blame(`the report of a stop has ${sum} items, and ${atStop.length} were in work`);
    const still = atStop.filter(({ endedAt }) => endedAt === undefined).length;
    if (abandoned < still) this.#blame(`the report of a stop has ${abandoned} abandoned, and ${still} still run`);
    const tookMs = this.#time.now - Math.max(note.graceUntil === Infinity ? at : note.graceUntil, at);
    const last = Math.max(at, ...atStop.map(({ endedAt }) => endedAt ?? Infinity));
    if (this.#notes.isCalm) {
      if (tookMs > ABORT_WAIT_MS + SLACK_MS) this.#blame(`a stop took ${tookMs.toFixed(1)} ms more than its grace`);
      if (last !== Infinity && this.#time.now > last + SLACK_MS)
        this.#blame(`a stop took ${(this.#time.now - last).toFixed(1)} ms more than the handlers`);
      this.#checkReport(note, eventsBefore, report);
    }
  }

  /** Counts what was told since, where one worker alone tells. */
  #checkReport(
    note: WorkerNote,
    from: number,
    {
      finished,
      released,
      abandoned,
    }: { readonly finished: number; readonly released: number; readonly abandoned: number },
  ): void {
    const isAlone = this.#notes.workers.filter(({ process }) => process === note.process).length === 1;
    if (!isAlone || this.#hasTaken()) return;
    const told = this.#process.events.slice(from).map(({ type }) => type);
    const count = (...types: readonly string[]): number => told.filter((type) => types.includes(type)).length;
    const still = note.runs.filter(({ endedAt }) => endedAt === undefined).length;
    const seen = {
      finished: count("done", "retry", "dead", "cancelled"),
      released: count("released"),
      abandoned: count("discarded") + still,
    };
    if (finished !== seen.finished || released !== seen.released || abandoned !== seen.abandoned)
      this.#blame(
        `a stop reports ${finished} finished, ${released} released, ${abandoned} abandoned; told were ${seen.finished}, ${seen.released} and ${seen.abandoned}`,
      );
  }

  #hasTaken(): boolean {
    return this.#plan.deeds.some(({ kind }) => kind === "take");
  }

  async #take(): Promise<void> {
    const random = this.#random;
    const giveUp = random.chance(0.3) ? new AbortController() : undefined;
    if (giveUp !== undefined) this.#time.after(random.next() * 500, () => giveUp.abort());
    const waitMs = random.pick([0, 300, 2_000]);
    const max = random.between(1, 3);
    const began = this.#time.now;
    try {
      const lease = random.chance(0.5) ? random.pick([600, 1_500]) : undefined;
      const taken = await this.#process.queue.take({ max, wait: waitMs, signal: giveUp?.signal, lease });
      const tookMs = this.#time.now - began;
      if (taken.length > max) this.#blame(`${taken.length} were taken, and not ${max}`);
      if (this.#notes.isCalm && tookMs > waitMs + SLACK_MS)
        this.#blame(`taking took ${tookMs.toFixed(1)} ms, and not ${waitMs}`);
      if (new Set(taken.map(({ item }) => item.key)).size !== taken.length)
        this.#blame("two of one key were taken at once");
      if (giveUp !== undefined && getEventListeners(giveUp.signal, "abort").length > 0)
        this.#blame("a take listens on");
      const runs = taken.map(({ item, lease: held }) => this.#begin(undefined, item, held));
      await this.#process.sleep(random.next() * random.pick([100, 3_000]));
      for (const [index, one] of taken.entries()) {
        const how = random.pick(["done", "retry", "dead", "release", "leave"] as const);
        const wasLost = one.lease.leftMs === 0;
        const run = runs[index];
        if (run !== undefined) run.endedAt = this.#time.now;
        try {
          if (how === "done") await one.done({ token: one.item.payload });
          else if (how === "retry") await one.retry(new Error("again"), { after: 100 });
          else if (how === "dead") await one.dead(new Error("never"));
          else if (how === "release") await one.release();
          else await one[Symbol.asyncDispose]();
          if (wasLost && how !== "leave") this.#blame("what was lost is settled");
          if (how !== "leave") await this.#settledTwice(one);
        } catch (error) {
          if (!(error instanceof LeaseLost) || this.#notes.isCalm) this.#expect(error);
        }
      }
    } catch (error) {
      this.#expect(error);
    }
  }

  async #settledTwice(one: { done(): Promise<void> }): Promise<void> {
    try {
      await one.done();
      this.#blame("an item was settled twice");
    } catch (error) {
      if (!(error instanceof LeaseLost)) this.#expect(error);
    }
  }

  async #hold(): Promise<void> {
    const random = this.#random;
    const key = random.pick(KEYS);
    const waitMs = random.pick([0, 500, 5_000]);
    const began = this.#time.now;
    try {
      const held = await this.#process.queue.hold(key, { wait: waitMs, lease: random.pick([600, 2_000]) });
      if (
        this.#notes.isCalm &&
        this.#notes.runs.some((run) => run.key === key && run.endedAt === undefined && run.lease.leftMs > 0)
      )
        this.#blame(`${key} is held while it is worked on`);
      this.#notes.held.add(key);
      await this.#process.sleep(random.next() * random.pick([200, 3_000]), held.signal);
      this.#notes.held.delete(key);
      const wasCertain = held.leftMs > 0;
      if (!wasCertain && !held.signal.aborted) this.#blame(`the hold of ${key} is over, and nobody was told`);
      const released = await held.release();
      if (released !== wasCertain && this.#notes.isCalm)
        this.#blame(`the release of ${key} answered ${String(released)}`);
      if (await held.release()) this.#blame(`${key} was released twice`);
    } catch (error) {
      this.#notes.held.delete(key);
      if (!(error instanceof LockBusy)) this.#expect(error);
      else if (this.#time.now < began + waitMs) this.#blame(`${key} was refused too early`);
    }
  }

  #handle(worker: WorkerNote, item: WorkItem<number>, lease: HeldLease): unknown {
    const run = this.#begin(worker, item, lease);
    const { act } = run;
    if (act.progress !== undefined) lease.progress(act.progress);
    const conclude = (): unknown => {
      run.endedAt = this.#time.now;
      run.reason = codeOf(lease.signal.reason);
      switch (act.end) {
        case "return":
          return { token: item.payload };
        case "return nothing":
          return undefined;
        case "return too much":
          return "x".repeat(PAYLOAD_LIMIT);
        case "return a function":
          return () => undefined;
        case "throw":
          throw new Error("planned to fail");
        case "fatal":
          throw new Fatal("planned to be fatal");
        case "later":
          throw new RetryLater(LATER_MS);
      }
    };
    if (act.isAtOnce) return conclude();
    return this.#process.sleep(act.lengthMs, act.heedsSignal ? lease.signal : undefined).then(() => {
      if (!act.heedsSignal || !lease.signal.aborted) return conclude();
      run.endedAt = this.#time.now;
      run.reason = codeOf(lease.signal.reason);
      throw lease.signal.reason instanceof Error
        ? lease.signal.reason
        : new Error("The signal fired without a reason.");
    });
  }

  #begin(worker: WorkerNote | undefined, { id, key, attempt, payload }: WorkItem<number>, lease: HeldLease): RunNote {
    const random = new Random(payload + attempt);
    const failures = new Random(payload).pick([0, 0, 0, 1, 2, 4]);
    return this.#notes.begin({
      worker,
      process: this.#process,
      id,
      token: payload,
      key,
      attempt,
      lease,
      from: this.#time.now,
      act: drawAct(random, attempt > failures),
      endedAt: undefined,
      reason: undefined,
    });
  }

  #expect(error: unknown): void {
    if (this.#process.isClosing && ["CLOSED", "STOPPING", "LEASE_LOST"].includes(codeOf(error) ?? "")) return;
    const codes = this.#notes.isCalm ? [] : ["STORE_UNAVAILABLE", "OUTCOME_UNKNOWN", "LEASE_LOST"];
    if (!codes.includes(codeOf(error) ?? ""))
      this.#blame(`a surprise: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  }

  #blame(says: string): void {
    this.#notes.blame(this.#time.now, `${this.#process.name}: ${says}`);
  }
}

export const workers: WeakMap<WorkerNote, Worker> = new WeakMap();
