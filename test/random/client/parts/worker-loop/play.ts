import { BatonError, QueueMissing } from "../../../../../src/domain/errors.ts";
import type { StopReport } from "../../../../../src/worker/endings-told.ts";
import { ManualClock } from "../../../../manual-clock.ts";
import type { LoopDeed, LoopSetting } from "./deeds.ts";
import type { GrantedLease, Seen } from "./leases.ts";
import { isOver, isOverBy, LoopStage } from "./stage.ts";
import { Together } from "./together.ts";

const ABORT_WAIT_MS = 6_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

/** One process with a loop or two. */
export async function playLoop(setting: LoopSetting, deeds: readonly LoopDeed[]): Promise<string | undefined> {
  const clock = new ManualClock();
  const together = new Together();
  const loops = ["a", "b"].slice(0, setting.loops).map((name) => new LoopPlay(setting, name, clock, together));
  const pass = async (ms: number): Promise<void> => {
    await clock.pass(ms);
    for (const loop of loops) loop.look();
  };
  const problem = (): string | undefined => {
    const alone = together.problem();
    return alone ?? loops.map((loop) => loop.problem()).find((one) => one !== undefined);
  };

  for (const loop of loops) loop.begin();
  await pass(0);
  for (const deed of deeds) {
    loops[deed.loop]?.do(deed);
    await pass(0);
    // Step by step, so that what happens is seen in time, and in larger steps the longer it takes.
    let stepMs = 4;
    for (let left = deed.kind === "pass" ? deed.ms : 0; left > 0; left -= stepMs) {
      stepMs = Math.min(left, stepMs * 1.3);
      await pass(stepMs);
    }
    const wrong = problem();
    if (wrong !== undefined) return `${wrong}, after ${JSON.stringify(deed)}`;
  }
  for (const loop of loops) loop.calm();
  await pass(5_000);
  for (const loop of loops) loop.do({ kind: "stop", ms: 0 });
  await pass(20_000);
  const wrong = problem();
  if (wrong !== undefined) return wrong;
  for (const loop of loops) loop.endAll();
  await pass(100_000);
  if (!loops.every(({ hasStopped }) => hasStopped)) return "it never stops";
  // Outages that nothing ended have no timer.
  if (clock.timers > 0) return `${clock.timers} timers are left`;
  return problem();
}

class LoopPlay {
  readonly #stage: LoopStage;
  readonly #together: Together;
  readonly #setting: LoopSetting;
  readonly #hurry = new AbortController();
  #asked = 0;
  #report: StopReport | undefined;
  #reportedAt = Infinity;
  #stopAt = Infinity;
  #graceUntil = Infinity;
  /** Items that were in work when the stop began, or came after it. */
  #overBefore: ReadonlySet<Seen> = new Set();
  #perhapsOver: ReadonlySet<Seen> = new Set();
  /** Since when asking pauses, and how long it may pause before it looks. */
  #failedAt: number | undefined;
  #pauseMs = 0;
  #nextPauseMs = FIRST_PAUSE_MS;
  /** It pauses because the store is away: an answer ends the pause. */
  #isAway = false;
  #isMissing = false;
  #declared = 0;
  #looksSeen = 0;
  #openBefore: readonly GrantedLease[] = [];
  readonly #problems: string[] = [];

  constructor(setting: LoopSetting, name: string, clock: ManualClock, together: Together) {
    this.#setting = setting;
    this.#together = together;
    this.#stage = new LoopStage(setting, name, clock, together);
    this.#stage.onStop = () => this.#stop(1_000);
    this.#stage.onRefused = () => this.#refused(true, false);
    this.#stage.onHeard = () => this.#heard();
  }

  get hasStopped(): boolean {
    return this.#report !== undefined;
  }

  begin(): void {
    this.#stage.loop.start(() => (this.#asked += 1));
  }

  problem(): string | undefined {
    const { problems, open, loop, running } = this.#stage;
    if (loop.running !== running) this.#problems.push(`it says that ${loop.running} run, and ${running} do`);
    if (loop.idle !== (open.length === 0))
      this.#problems.push(`it is ${loop.idle ? "idle" : "busy"}, and should not be`);
    if (this.#asked !== 1) this.#problems.push(`it says ${this.#asked} times that it asks`);
    // What is over was looked at when it was, and once more at the end.
    const leases = this.hasStopped ? this.#stage.leases.values() : new Set([...open, ...this.#openBefore]);
    this.#openBefore = open;
    for (const lease of leases) {
      this.#checkLease(lease);
      for (const seen of lease.items) this.#checkItem(seen);
    }
    return problems[0] ?? this.#problems[0];
  }

  /** The store is well from now on. */
  calm(): void {
    const stage = this.#stage;
    stage.renewals = "kept";
    stage.settling = "at once";
    stage.report = "there";
    this.do({ kind: "answer" });
  }

  endAll(): void {
    for (const seen of this.#stage.items.values()) this.#stage.end(seen, "returned");
  }

  do(deed: Partial<LoopDeed> & Pick<LoopDeed, "kind">): void {
    const stage = this.#stage;
    const { which = 0, ms = 0 } = deed;
    const [claim] = stage.claims;
    switch (deed.kind) {
      case "grant": {
        if (claim === undefined || claim.request.signal.aborted) return;
        const { count = 0, works = [], attempt = 1, behind = 0, losses = 0, suspects = 0 } = deed;
        const agoMs = which % 6 === 0 ? 2_400 + (ms % 300) : which % 50;
        if (count > 0) this.#heard();
        return stage.grant(claim, { count, works, attempt, behind, losses, suspects }, agoMs);
      }
      case "fail claim": {
        if (claim === undefined || claim.request.signal.aborted) return;
        stage.claims.delete(claim);
        const isMissing = which % 3 === 0;
        const code = which % 3 === 1 ? "STORE_UNAVAILABLE" : "STORE_FULL";
        this.#refused(!isMissing && code === "STORE_UNAVAILABLE", isMissing);
        return claim.reply.reject(isMissing ? new QueueMissing("cars") : new BatonError(code, "No."));
      }
      case "end": {
        const running = [...stage.items.values()].filter(
          ({ held, ended }) => held !== undefined && ended === undefined,
        );
        // Many at once leave many slots.
        const from = which % Math.max(1, running.length);
        const ending = (deed.count ?? 0) < 100 ? running.slice(from, from + 1) : running.slice(0, deed.count);
        for (const seen of ending) stage.end(seen, deed.how ?? "returned");
        break;
      }
      case "answer":
        for (const answer of stage.unanswered.splice(0)) answer();
        return;
      case "renewals":
        stage.renewals = deed.renewals ?? "kept";
        return;
      case "settling":
        stage.settling = deed.settling ?? "at once";
        return;
      case "report":
        stage.report = deed.report ?? "there";
        return;
      case "doubt": {
        const lease = [...stage.leases.values()].at(-1 - (which % 5))?.lease;
        if (lease !== undefined) claim?.request.lost?.(lease);
        return;
      }
      case "stop":
        return this.#stop(ms);
      case "hurry":
        this.#graceUntil = Math.min(this.#graceUntil, Math.max(this.#stopAt, stage.clock.monotonic()));
        stage.leavesAt = Math.min(stage.leavesAt, this.#graceUntil + ABORT_WAIT_MS);
        if (this.#stopAt !== Infinity || which % 3 === 0) this.#hurry.abort();
        break;
      case "pass":
    }
  }

  #stop(graceMs: number): void {
    const stage = this.#stage;
    if (stage.stopping) return;
    stage.stop();
    const now = stage.clock.monotonic();
    this.#stopAt = now;
    this.#graceUntil = this.#hurry.signal.aborted ? now : now + graceMs;
    stage.leavesAt = this.#graceUntil + ABORT_WAIT_MS;
    this.#overBefore = new Set([...stage.items.values()].filter(isItemOver));
    // It is told to be lost, and is settled again together with others that are not: the store may answer it yet.
    const mayBeAnswered = ({ lease, lastAnswer }: Seen): boolean =>
      lease.isSettled && lastAnswer !== "settled" && lastAnswer !== "lost";
    this.#perhapsOver = new Set([...this.#overBefore].filter(mayBeAnswered));
    void stage.loop.stop(graceMs, this.#hurry.signal).then((report) => {
      this.#report = report;
      this.#reportedAt = stage.clock.monotonic();
      this.#checkReport(report);
      stage.leavesAt = this.#reportedAt;
      for (const lease of stage.open) this.#together.over(lease);
    });
  }

  /** A claim fails, and unless it pauses already, it does from now on. */
  #refused(isAway: boolean, isMissing: boolean): void {
    if (this.#failedAt !== undefined || this.#stage.stopping) return;
    this.#isMissing = isMissing;
    this.#failed(this.#stage.clock.monotonic(), isAway);
  }

  #failed(at: number, isAway: boolean): void {
    this.#failedAt = at;
    this.#isAway = isAway;
    this.#pauseMs = this.#nextPauseMs;
    this.#nextPauseMs = Math.min(LONGEST_PAUSE_MS, this.#nextPauseMs * 2);
  }

  /** Another claim that was out is granted. A pause goes on unless it waits for the store to be there; the next one is short again. */
  #heard(): void {
    this.#nextPauseMs = FIRST_PAUSE_MS;
    if (this.#failedAt !== undefined && this.#isAway) this.#pauseMs = this.#stage.clock.monotonic() - this.#failedAt;
  }

  /** Time has passed, and all that follows from it has happened. */
  look(): void {
    const { clock, looks, claims, stopping, running, free } = this.#stage;
    const now = clock.monotonic();
    this.#checkPauses(looks.slice(this.#looksSeen), now);
    this.#looksSeen = looks.length;
    if (this.#together.isWanted && [...claims].some(({ request }) => !request.signal.aborted))
      this.#problems.push("something is to run alone, and it goes on asking");
    const mayAsk = !stopping && this.#failedAt === undefined && !this.#together.isWanted;
    const hopeless = this.#stage.unbegun.length;
    if (mayAsk && free - hopeless > 0 && claims.size === 0) this.#problems.push("slots are free, and it does not ask");
    if (mayAsk && free - hopeless >= 128 && claims.size === 1) this.#problems.push("it does not ask a second time");
    for (const lease of this.#stage.open) {
      if (lease.isReportDue(now - 1) && !lease.isLossTold && lease.last?.held?.signal.aborted === false)
        this.#problems.push(`${lease.last.id} takes longer than a run, and the store does not hear of those before it`);
      if (lease.isBegun || lease.isSettled || this.#together.waiting.has(lease)) continue;
      // Timers count whole milliseconds.
      const isOverdue = lease.isUnwanted || lease.isSuspect || lease.isStale(now - 1);
      const mayWait = !isOverdue && running === this.#setting.concurrency;
      if (!mayWait) this.#problems.push(`${lease.key} is kept, and should begin or go back`);
    }
    this.#checkStop(now);
  }

  /** It looks whether the store is there, sooner after the first failure, and asks again when it is. */
  #checkPauses(looks: readonly number[], now: number): void {
    const { report, declared } = this.#stage;
    if (this.#failedAt === undefined || this.#stage.stopping) {
      if (looks.length > 0 && this.#failedAt === undefined) this.#problems.push("it looks, and nothing was wrong");
      return;
    }
    for (const at of looks) {
      if (at - this.#failedAt > this.#pauseMs) this.#problems.push(`it looks after ${at - this.#failedAt} ms`);
      this.#isMissing ||= report === "missing";
      if (report === "there" && this.#isMissing) this.#declared += 1;
      if (report === "there" || report === "refused") this.#failedAt = undefined;
      else this.#failed(at, report === "away");
      if (this.#failedAt === undefined) break;
    }
    if (this.#failedAt !== undefined && now - this.#failedAt > this.#pauseMs) this.#problems.push("it does not look");
    if (declared !== this.#declared) this.#problems.push(`it declared ${declared} times, not ${this.#declared}`);
  }

  #checkStop(now: number): void {
    const stage = this.#stage;
    if (!stage.stopping) return;
    const isQuiet = stage.running === 0 && stage.claims.size === 0 && stage.open.length === 0;
    const until = this.#graceUntil + ABORT_WAIT_MS;
    if (this.#report === undefined && (isQuiet || now >= until)) this.#problems.push("it should have stopped");
    if (this.#report !== undefined && !isQuiet && this.#reportedAt < until) this.#problems.push("it stopped too early");
    for (const { last } of stage.open) {
      if (last === undefined) continue;
      const { id, held, ended } = last;
      if (ended !== undefined || held === undefined) continue;
      if (now >= this.#graceUntil && !held.signal.aborted) this.#problems.push(`${id} is not told to stop`);
      const reason: unknown = held.signal.reason;
      const isStop = reason instanceof BatonError && reason.code === "STOPPING";
      if (now < this.#graceUntil && isStop) this.#problems.push(`${id} is told to stop before the grace is over`);
    }
  }

  #checkReport(report: StopReport): void {
    const counts = { finished: 0, released: 0, abandoned: 0 };
    const more = { finished: 0, released: 0, abandoned: 0 };
    for (const seen of this.#stage.items.values()) {
      const isInWork = seen.held !== undefined || seen.index === 0;
      if (!isInWork || (this.#overBefore.has(seen) && !this.#perhapsOver.has(seen))) continue;
      const into = this.#perhapsOver.has(seen) ? more : counts;
      const last = seen.events.at(-1);
      if (last === "released") into.released += 1;
      else if (isItemOver(seen) && last !== "discarded" && !last?.startsWith("lost")) into.finished += 1;
      else into.abandoned += 1;
    }
    const isWrong = (["finished", "released", "abandoned"] as const).some(
      (what) => report[what] < counts[what] || report[what] > counts[what] + more[what],
    );
    if (isWrong)
      this.#problems.push(
        `it reports ${JSON.stringify(report)}, and should ${JSON.stringify(counts)}, and up to ${JSON.stringify(more)} more`,
      );
  }

  #checkLease({ key, items, isBegun, isSettled, last }: GrantedLease): void {
    const events = items.flatMap((one) => one.events);
    const blame = (what: string): void => void this.#problems.push(`${key} ${what}: ${events.join(", ")}`);
    if (last?.ended?.goesOn === true) blame(`has a run, and does not go on after ${last.id}`);
    if (last?.ended !== undefined && last.ended.ending !== "none" && !isSettled) blame("has ended, and is not settled");
    if (last?.ended === undefined && isBegun && isSettled) blame(`is settled while ${last?.id ?? ""} runs`);
  }

  /** What became of one item is what should, as far as it got. */
  #checkItem(seen: Seen): void {
    const { id, index, events, settled, ended, lease, held, lastAnswer } = seen;
    const blame = (what: string): void =>
      void this.#problems.push(`${id} ${what}: ${events.join(", ")} / ${settled.join(", ")}`);
    if (held === undefined && index > 0) {
      if (events.length + settled.length > 0) blame("was not begun, and is told of");
      return;
    }
    const last = events.find(isOverBy);
    const should = held === undefined ? settled[0] : ended?.ending;
    if (settled.some((one) => one !== should)) blame(`is settled otherwise than ${should ?? "not"}`);
    if (events.filter((one) => one.startsWith("lost")).length > 1) blame("is lost twice");
    if (events.filter((one) => one === "cancelling").length > 1) blame("is cancelled twice");
    const begun = held === undefined ? 0 : 1;
    if (events.filter((one) => one === "started").length !== begun) blame("is told wrongly to have started");
    if (events.filter(isOverBy).length > 1) blame("is over twice");
    const isLost = lease.last?.ended?.ending === "none" || (lease.isSettled && lastAnswer === "lost");
    if (held !== undefined && ended === undefined && last !== undefined) blame("is over, and runs");
    if (lastAnswer === "settled" && last !== (should === "release" ? "released" : should))
      blame(`should be ${should ?? ""}`);
    if (lastAnswer !== "settled" && isLost && last !== (held === undefined ? undefined : "discarded"))
      blame("should be discarded");
    if (last === "discarded" && !lease.isLossTold) blame("is discarded, and not lost");
    const told = new Set(lease.items.flatMap((one) => one.events));
    const isLossOfBegun = told.has("lost taken") || told.has("lost expired");
    if (lastAnswer === "lost" && held !== undefined && !isLossOfBegun) blame("should be lost");
    if (lastAnswer === "lost" && seen === lease.last && held?.signal.aborted === false)
      blame("is lost, and its signal is silent");
    if (last !== undefined && last !== "discarded" && lastAnswer !== "settled") blame("is told of without an answer");
  }
}

function isItemOver(seen: Seen): boolean {
  const { events, held, lease } = seen;
  return events.some(isOverBy) || (held === undefined && isOver(lease));
}
