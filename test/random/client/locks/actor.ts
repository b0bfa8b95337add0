/** One deed of a run: what an application does with locks, and what must come of it. */
import { getEventListeners } from "node:events";
import type { HeldLock } from "../../../../src/client/locks/hold.ts";
import { LockBusy } from "../../../../src/client/locks/lock-busy.ts";
import { BatonError, LockLost } from "../../../../src/domain/errors.ts";
import { Random } from "../../../kit/random.ts";
import type { VirtualTime } from "../../../simulation/virtual-time.ts";
import { type Deed, LEASES_MS, LOCKS } from "./plan.ts";
import type { LockProcess } from "./process.ts";
import type { HoldNote, WaitNote, Watchers } from "./watchers.ts";

/** An application that gives up is free to go this soon, also when the store does not answer. */
const UNANSWERED_MS = 1_000;
const SLACK_MS = 300;
/** What a try may take: its own time to wait for a store that does not answer, and that of giving up. */
const TRY_MS = 5_000;

interface Wish {
  readonly name: string;
  readonly leaseMs: number;
  readonly waitMs: number | "forever";
  readonly delayMs: number;
  readonly abortMs: number | undefined;
}

export class Actor {
  readonly #time: VirtualTime;
  readonly #process: LockProcess;
  readonly #watchers: Watchers;
  readonly #random: Random;
  readonly #seed: number;

  constructor(time: VirtualTime, process: LockProcess, watchers: Watchers, deed: Deed) {
    this.#time = time;
    this.#process = process;
    this.#watchers = watchers;
    this.#random = new Random(deed.seed);
    this.#seed = deed.seed;
  }

  async play(kind: Deed["kind"]): Promise<void> {
    switch (kind) {
      case "lock":
        return await this.#lock();
      case "with lock":
        return await this.#withLock();
      case "session":
        return await this.#session();
      case "each":
        return await this.#each();
      case "campaign":
        return await this.#campaign();
      case "lead":
        return await this.#lead();
      default:
    }
  }

  async #lock(): Promise<void> {
    for (let round = this.#random.between(1, 2); round > 0; round -= 1) {
      const wish = this.#wish();
      const { name, leaseMs, delayMs } = wish;
      const options = { lease: leaseMs, slots: slotsOf(name), delayAfterLoss: delayMs };
      const note = await this.#acquire(wish, (waiting) => this.#process.baton.lock(name, { ...options, ...waiting }));
      if (note !== undefined) await this.#use(note);
    }
  }

  async #withLock(): Promise<void> {
    const wish = this.#wish();
    const { name, leaseMs, delayMs } = wish;
    const fails = this.#random.chance(0.3);
    const options = { lease: leaseMs, slots: slotsOf(name), delayAfterLoss: delayMs };
    const broken = new Error("the work fails");
    let note: HoldNote | undefined;
    const waiting = this.#waiting(wish);
    const work = async (held: HeldLock): Promise<string> => {
      note = this.#granted(held, leaseMs, delayMs);
      waiting.end(true);
      await this.#process.sleep(this.#holdMs(leaseMs), this.#random.chance(0.5) ? held.signal : undefined);
      // What runs under the lock keeps it, whoever closes the connection.
      note.letGoAt ??= this.#time.now;
      if (fails) throw broken;
      return "worked";
    };
    try {
      const worked = await this.#process.baton.withLock(name, work, { ...options, ...waiting.options });
      if (worked !== "worked" || note === undefined) this.#blame(`withLock answered ${worked}`);
      if (note !== undefined && isLost(note.held)) this.#blame(`what was done under ${name} counts though it was lost`);
      if (fails) this.#blame("an error of the work is lost");
    } catch (error) {
      if (note === undefined) this.#refused(wish, waiting, error);
      else if (error !== broken && !(error instanceof LockLost)) this.#unexpected(error);
    }
    if (note === undefined) waiting.end(false);
    else note.isReleased = true;
  }

  /** Several locks on one life: kept, lost and freed as one. */
  async #session(): Promise<void> {
    const leaseMs = this.#random.pick(LEASES_MS);
    try {
      const session = await this.#process.baton.session({
        lease: leaseMs,
        expiry: this.#random.pick(["release", "delete"]),
        owner: "simulated",
      });
      const notes: HoldNote[] = [];
      for (const name of [...LOCKS.keys()].slice(this.#random.between(0, 2))) {
        const wish = { ...this.#wish(), name, leaseMs, waitMs: this.#random.pick([0, 500, 2_000]) };
        const options = { slots: slotsOf(name), delayAfterLoss: wish.delayMs };
        const note = await this.#acquire(wish, (waiting) => session.lock(name, { ...options, ...waiting }));
        if (note !== undefined) notes.push(note);
      }
      await this.#process.sleep(this.#holdMs(leaseMs), session.signal);
      const losses = notes.filter(({ held, isReleased }) => !isReleased && isLost(held)).length;
      const alone = notes.filter(({ isReleased }) => !isReleased).length;
      if (losses > 0 && losses < alone) this.#blame("locks of one session are not lost as one");
      const [first] = notes;
      if (first !== undefined && this.#random.chance(0.3)) await this.#release(first, undefined);
      for (const note of notes) note.letGoAt ??= this.#time.now;
      await session.close({ grace: this.#random.pick([0, 500]) });
      for (const note of notes) {
        if (!note.held.signal.aborted && !note.isReleased) this.#blame(`${note.held.name} outlives its session`);
        note.isReleased = true;
      }
      if (session.leftMs > 0 || !session.signal.aborted) this.#blame("a session that is closed is certain");
    } catch (error) {
      this.#expect(error);
    }
  }

  /** Tasks that others walk as well. What is done once is not done again. */
  async #each(): Promise<void> {
    const { baton } = this.#process;
    const tasks = Array.from({ length: this.#random.between(1, 5) }, (_, task) => task);
    const concurrency = this.#random.between(1, 3);
    const failing = this.#random.chance(0.3) ? this.#random.between(0, 4) : undefined;
    const end = this.#random.chance(0.3) ? new AbortController() : undefined;
    let endedAt = Infinity;
    const stop = (): void => {
      endedAt = this.#time.now;
      end?.abort(new Error("enough"));
    };
    if (end !== undefined) this.#process.clock.setTimer(this.#random.next() * 2_000, stop);
    let running = 0;
    const work = async (task: number, held: HeldLock): Promise<void> => {
      running += 1;
      if (running > concurrency) this.#blame(`${running} tasks run at a time, and not ${concurrency}`);
      // One that was just being taken still begins, with a signal that has fired.
      if (end?.signal.aborted === true && !held.signal.aborted) this.#blame("a task begins after the end");
      if (this.#watchers.isCalm && this.#time.now > endedAt + SLACK_MS) this.#blame("a task is taken after the end");
      try {
        await this.#process.sleep(this.#random.next() * 600, held.signal);
        if (task === failing) throw new Error("the task fails");
        held.check();
      } finally {
        running -= 1;
      }
    };
    const key = (task: number): string => `task ${task}`;
    try {
      const lease = this.#random.pick(LEASES_MS);
      const report = await baton.each(tasks, work, { key, concurrency, lease, remember: "1h", signal: end?.signal });
      const all = [...report.done, ...report.skipped.map(({ task }) => task), ...report.failed.map(({ task }) => task)];
      if (new Set(all).size !== all.length) this.#blame(`each reports a task twice: ${all.join(", ")}`);
      if (end?.signal.aborted !== true && all.length !== tasks.length)
        this.#blame(`each reports ${all.length} tasks of ${tasks.length}`);
      if (failing !== undefined && report.done.includes(failing)) this.#blame("a task that fails is done");
      for (const task of report.done) this.#watchers.done(task, this.#time.now);
      if (running > 0) this.#blame("each is over, and its tasks run");
      if (end !== undefined && getEventListeners(end.signal, "abort").length > 0) this.#blame("each listens on");
    } catch (error) {
      this.#expect(error);
    }
  }

  async #campaign(): Promise<void> {
    const leaseMs = this.#random.pick(LEASES_MS);
    await using election = this.#process.baton.elect("one", { lease: leaseMs, rest: 100 });
    for (let round = this.#random.between(1, 3); round > 0; round -= 1) {
      if (this.#random.chance(0.2))
        this.#process.clock.setTimer(this.#random.next() * 3_000, () => void election.resign().catch(() => undefined));
      try {
        const note = this.#granted(await election.campaign(), leaseMs, 0);
        if (!election.leading && note.held.leftMs > 0) this.#blame("who was elected does not lead");
        await this.#process.sleep(this.#holdMs(leaseMs), note.held.signal);
        note.letGoAt ??= this.#time.now;
        await election.resign();
        if (election.leading) this.#blame("who has resigned leads");
        note.isReleased = true;
      } catch (error) {
        if (!(error instanceof Error && error.name === "AbortError")) this.#expect(error);
      }
    }
  }

  /** Terms that end by themselves, fail, or last until the lead is lost; then the next. */
  async #lead(): Promise<void> {
    const { baton } = this.#process;
    const leaseMs = this.#random.pick(LEASES_MS);
    const restMs = this.#random.pick([0, 100, 1_000]);
    const outer = this.#random.chance(0.5) ? new AbortController() : undefined;
    const election = baton.elect("one", { lease: leaseMs, rest: restMs, signal: outer?.signal });
    const seen: (number | undefined)[] = [];
    const observing = this.#observe(election, seen);
    let endedAt = -Infinity;
    let running = 0;
    const work = async (term: HeldLock): Promise<void> => {
      running += 1;
      if (running > 1) this.#blame("two terms of one candidate run at once");
      if (this.#watchers.isCalm && this.#time.now < endedAt + restMs)
        this.#blame("it leads again before it has rested");
      const note = this.#granted(term, leaseMs, 0);
      try {
        await this.#process.sleep(this.#holdMs(leaseMs), this.#random.chance(0.6) ? term.signal : undefined);
        if (this.#watchers.isCalm && !this.#process.isClosing && !isLost(term) && term.leftMs === 0)
          this.#blame("the lead was let go while its function ran");
        if (this.#random.chance(0.3)) throw new Error("the leader fails");
      } finally {
        running -= 1;
        note.letGoAt ??= this.#time.now;
        // What is lost, or given up for a resignation, is campaigned for at once.
        endedAt = term.signal.aborted ? -Infinity : this.#time.now;
        note.isReleased = true;
      }
    };
    const leading = election.lead(work);
    leading.catch(() => undefined);
    for (let left = this.#random.between(1, 4); left > 0; left -= 1) {
      await this.#process.sleep(this.#random.next() * 2_000);
      if (this.#random.chance(0.4)) await election.resign().catch((error: unknown) => this.#expect(error));
    }
    if (outer === undefined) await election.stop({ grace: 5_000 });
    else outer.abort();
    try {
      await leading;
    } catch (error) {
      this.#expect(error);
    }
    await election.stop();
    if (running > 0 || election.leading) this.#blame("an election is stopped, and leads");
    await observing;
    if (outer !== undefined && getEventListeners(outer.signal, "abort").length > 0)
      this.#blame("an election listens on");
    const fences = seen.filter((fence) => fence !== undefined);
    if (fences.some((fence, index) => fence < (fences[index - 1] ?? 0)))
      this.#blame(`leaders come back: ${fences.join(", ")}`);
  }

  async #observe(
    election: { observe(): AsyncGenerator<{ readonly fence: number } | undefined> },
    seen: (number | undefined)[],
  ): Promise<void> {
    try {
      for await (const leader of election.observe()) {
        if (seen.length > 0 && seen.at(-1) === leader?.fence)
          this.#blame(`the same leader is told twice: ${leader?.fence ?? "nobody"}`);
        seen.push(leader?.fence);
      }
    } catch (error) {
      this.#expect(error);
    }
  }

  async #acquire(wish: Wish, ask: (waiting: Waiting["options"]) => Promise<HeldLock>): Promise<HoldNote | undefined> {
    const waiting = this.#waiting(wish);
    try {
      const held = await ask(waiting.options);
      if (waiting.signal?.aborted === true) this.#blame(`${wish.name} was given to somebody who had given up`);
      const note = this.#granted(held, wish.leaseMs, wish.delayMs);
      waiting.end(true);
      return note;
    } catch (error) {
      this.#refused(wish, waiting, error);
      waiting.end(false);
      return undefined;
    }
  }

  async #use(note: HoldNote): Promise<void> {
    const { held, leaseMs } = note;
    await this.#process.sleep(this.#holdMs(leaseMs));
    const how = this.#random.between(0, 9);
    // Forgotten: kept by signs of life until the connection closes.
    if (how === 0) return;
    if (how < 3) {
      note.letGoAt = this.#time.now;
      await held[Symbol.asyncDispose]();
      if (held.leftMs > 0) this.#blame(`${held.name} is certain though it was let go`);
      note.isReleased = true;
      return;
    }
    await this.#release(note, how < 5 ? this.#random.pick([0, 400]) : undefined);
  }

  async #release(note: HoldNote, retireMs: number | undefined): Promise<void> {
    const { held } = note;
    const { name } = held;
    const wasCertain = held.leftMs > 0;
    note.letGoAt = this.#time.now;
    const wall = this.#time.now;
    try {
      const releasing = held.release(retireMs === undefined ? {} : { retire: retireMs });
      if (held.leftMs > 0) this.#blame(`${name} is certain while it is let go`);
      const both = this.#random.chance(0.2) ? await Promise.all([releasing, held.release()]) : [await releasing];
      const [released] = both;
      if (both.some((one) => one !== released)) this.#blame(`two releases of ${name} at once have two answers`);
      if (released === true && retireMs !== undefined) this.#watchers.retired(name, wall + retireMs);
      if (released === true && !wasCertain) this.#blame(`${name} was released though it was not certain`);
      if (await held.release()) this.#blame(`${name} was released twice`);
    } catch (error) {
      this.#expect(error);
    }
    note.isReleased = true;
    try {
      held.check();
      this.#blame(`${name} is certain though it was let go`);
    } catch (error) {
      if (!(error instanceof BatonError)) this.#unexpected(error);
    }
  }

  #granted(held: HeldLock, leaseMs: number, delayMs: number): HoldNote {
    return this.#watchers.granted({
      process: this.#process,
      held,
      leaseMs,
      delayMs,
      from: this.#time.now,
      letGoAt: this.#process.isClosing ? this.#time.now : undefined,
      isReleased: false,
      silentSince: undefined,
      isLost: false,
      certainUntil: 0,
    });
  }

  #waiting({ name, waitMs, abortMs }: Wish): Waiting {
    const giveUp = abortMs === undefined ? undefined : new AbortController();
    const askedAt = this.#time.now;
    let abortedAt = Infinity;
    const timer =
      abortMs === undefined
        ? undefined
        : this.#process.clock.setTimer(abortMs, () => {
            abortedAt = this.#time.now;
            giveUp?.abort(new Error(GAVE_UP));
          });
    const isPatient = waitMs === "forever" && abortMs === undefined;
    const note: WaitNote = {
      process: this.#process,
      name,
      askedAt,
      isPatient,
      endedAt: undefined,
      grantedAt: undefined,
    };
    if (waitMs === "forever") this.#watchers.waits.push(note);
    return {
      options: { wait: waitMs, signal: giveUp?.signal },
      signal: giveUp?.signal,
      askedAt,
      lateMs: () => this.#time.now - abortedAt,
      end: (isGranted) => {
        timer?.cancel();
        note.endedAt = this.#time.now;
        if (isGranted) note.grantedAt = this.#time.now;
        if (giveUp !== undefined && getEventListeners(giveUp.signal, "abort").length > 0)
          this.#blame("a wait listens on");
      },
    };
  }

  /** Why somebody did not get a lock, and when. */
  #refused({ name, waitMs }: Wish, { askedAt, signal, lateMs }: Waiting, error: unknown): void {
    const tookMs = this.#time.now - askedAt;
    if (error instanceof LockBusy) {
      if (waitMs === "forever") return this.#blame(`${name} was refused to one who waits for ever`);
      if (tookMs < waitMs) this.#blame(`${name} was refused after ${tookMs.toFixed(1)} ms, and not ${waitMs}`);
      const isLate = tookMs > waitMs + (this.#watchers.isCalm ? SLACK_MS : TRY_MS + UNANSWERED_MS + SLACK_MS);
      if (isLate && !this.#wasPaused())
        this.#blame(`${name} was refused only after ${tookMs.toFixed(1)} ms, and not ${waitMs}`);
      return;
    }
    if (error instanceof Error && error.message === GAVE_UP) {
      if (signal?.aborted !== true) this.#blame("somebody gives up who was not asked to");
      if (lateMs() > UNANSWERED_MS + SLACK_MS && !this.#wasPaused())
        this.#blame(`giving up ${name} took ${lateMs().toFixed(1)} ms`);
      return;
    }
    this.#expect(error);
  }

  #wasPaused(): boolean {
    return this.#process.wasPaused;
  }

  /** Of a store that is away, a session that was lost, and a connection that closes. */
  #expect(error: unknown): void {
    if (!(error instanceof BatonError)) return this.#unexpected(error);
    if (this.#process.isClosing && ["CLOSED", "SESSION_LOST", "STOPPING", "LOCK_LOST"].includes(error.code)) return;
    const codes = this.#watchers.isCalm
      ? []
      : ["STORE_UNAVAILABLE", "OUTCOME_UNKNOWN", "SESSION_LOST", "LOCK_LOST", "STOPPING"];
    if (!codes.includes(error.code)) this.#unexpected(error);
  }

  #unexpected(error: unknown): void {
    this.#blame(`a surprise: ${error instanceof Error ? `${error.name} ${error.message}` : String(error)}`);
  }

  #blame(says: string): void {
    this.#watchers.blame(this.#time.now, `${this.#process.name} (deed ${this.#seed}): ${says}`);
  }

  #wish(): Wish {
    const random = this.#random;
    return {
      name: random.pick([...LOCKS.keys()]),
      leaseMs: random.pick(LEASES_MS),
      waitMs: random.pick([0, 300, 3_000, "forever", "forever", "forever"]),
      delayMs: random.pick([0, 0, 500]),
      abortMs: random.chance(0.25) ? random.next() * 4_000 : undefined,
    };
  }

  #holdMs(leaseMs: number): number {
    return this.#random.next() * leaseMs * this.#random.pick([0, 0.1, 0.5, 2]);
  }
}

const GAVE_UP = "gave up";

interface Waiting {
  readonly options: { readonly wait: number | "forever"; readonly signal: AbortSignal | undefined };
  readonly signal: AbortSignal | undefined;
  readonly askedAt: number;
  readonly lateMs: () => number;
  readonly end: (isGranted: boolean) => void;
}

function slotsOf(name: string): number {
  return LOCKS.get(name) ?? 1;
}

export function isLost(held: HeldLock): boolean {
  return held.signal.reason instanceof LockLost;
}
