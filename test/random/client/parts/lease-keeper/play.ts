import type { Random } from "../../../../kit/random.ts";
import { difference } from "../play-scripts.ts";
import { KeeperModel, type ModelRun, type ModelSetting } from "./model.ts";
import { KeeperStage } from "./stage.ts";

export interface KeeperDeed {
  readonly kind:
    | "pass"
    | "add"
    | "begin"
    | "next"
    | "remove"
    | "progress"
    | "doubt"
    | "answer"
    | "abort"
    | "check"
    | "stall"
    | "stop";
  /** Picks among those that are there. */
  readonly which: number;
  readonly ms: number;
  /** Of an answer: what it says of each run. */
  readonly says: readonly ("yes" | "no" | "cancel")[] | "nothing";
  /** Time passes with it while nothing can run, and the timer that is late has not fired yet. */
  readonly inStallMs: number;
}

const MOST_HELD = 5;

export function drawKeeperSetting(random: Random): ModelSetting {
  return {
    leaseMs: random.pick([1_200, 3_000, 6_000]),
    timeoutMs: random.pick([undefined, 700, 2_000, 5_000]),
    chance: random.pick([0, 1]),
  };
}

export function drawKeeperDeed(random: Random, { leaseMs }: ModelSetting): KeeperDeed {
  const often = [
    "pass",
    "pass",
    "pass",
    "add",
    "add",
    "begin",
    "begin",
    "next",
    "next",
    "answer",
    "answer",
    "answer",
  ] as const;
  const rare = ["remove", "progress", "progress", "doubt", "abort", "check", "stall", "stall", "stop"] as const;
  const kind = random.chance(0.7) ? random.pick(often) : random.pick(rare);
  return {
    kind: kind === "stop" && random.chance(0.8) ? "pass" : kind,
    which: random.between(0, 99),
    ms: random.pick([
      random.between(0, 30),
      random.between(0, 250),
      random.between(0, leaseMs / 3),
      random.between(0, leaseMs * 1.3),
      200,
    ]),
    says: random.chance(0.3)
      ? "nothing"
      : Array.from({ length: MOST_HELD }, () => random.pick(["yes", "yes", "yes", "yes", "no", "cancel"] as const)),
    inStallMs: random.chance(0.12) ? random.between(1, leaseMs) : 0,
  };
}

export async function playKeeper(setting: ModelSetting, deeds: readonly KeeperDeed[]): Promise<string | undefined> {
  const play = new KeeperPlay(setting);
  for (const deed of deeds) {
    await play.deed(deed);
    const problem = play.problem();
    if (problem !== undefined) return problem;
  }
  return play.end();
}

class KeeperPlay {
  readonly #stage: KeeperStage;
  readonly #model: KeeperModel;
  readonly #setting: ModelSetting;
  #added = 0;
  #stalls = 0;
  #problem: string | undefined;

  constructor(setting: ModelSetting) {
    this.#setting = setting;
    this.#stage = new KeeperStage(setting);
    this.#model = new KeeperModel(setting, this.#stage.clock.monotonic());
  }

  async deed(deed: KeeperDeed): Promise<void> {
    const { clock } = this.#stage;
    // What needs no other time passes without any: its answer comes before the timer that is late.
    const isQuick = ["add", "remove", "doubt", "answer"].includes(deed.kind);
    if (deed.kind === "stall") await this.#stall(deed.ms, () => undefined);
    else if (isQuick && deed.inStallMs > 0) await this.#stall(deed.inStallMs, () => this.#do(deed));
    else {
      this.#do(deed);
      if (deed.kind === "stop" && clock.timers > 0) this.#problem ??= "it has a timer, and was stopped";
      await this.#pass(deed.kind === "pass" ? deed.ms : 0);
    }
    if (clock.timers > 1) this.#problem ??= `it has ${clock.timers} timers`;
    if (this.#stage.stalls.length > this.#stalls) this.#problem ??= "it tells of a stall, and there was none";
  }

  problem(): string | undefined {
    const { story, runs } = this.#stage;
    const wrong = this.#problem ?? difference(story, this.#model.story);
    if (wrong !== undefined) return wrong;
    for (const model of this.#model.runs.values()) {
      const run = runs.get(model.key);
      if (run === undefined) continue;
      const { lost, cancelled, timedOut, isRenewed } = run;
      const reason: unknown = run.signal.aborted ? run.signal.reason : undefined;
      const code = reason instanceof Error && "code" in reason ? reason.code : undefined;
      // A signal fires once; `check` has the last word.
      const is = { lost, cancelled, timedOut, isRenewed, leftMs: run.leftMs, isTold: code !== undefined };
      const { isLost, isCancelled, isTimedOut } = model;
      const should = {
        lost: isLost,
        cancelled: isCancelled,
        timedOut: isTimedOut,
        isRenewed: model.isRenewed,
        leftMs: this.#model.leftMs(model),
        isTold: model.reason !== undefined,
      };
      if (JSON.stringify(is) !== JSON.stringify(should))
        return `run ${model.key} is ${JSON.stringify(is)}, and should be ${JSON.stringify(should)}`;
    }
    return undefined;
  }

  /** Nothing is left behind when nothing runs. */
  async end(): Promise<string | undefined> {
    for (const run of this.#model.held) {
      this.#stage.keeper.remove(this.#run(run));
      this.#model.drop(run);
    }
    await this.#pass(20_000);
    if (this.#stage.clock.timers > 0) this.#problem ??= "it has a timer, and nothing to keep";
    return this.problem();
  }

  #do({ kind, which, ms, says }: KeeperDeed): void {
    const { keeper } = this.#stage;
    if (kind === "add") {
      // Some come when their time is nearly over, or is.
      const oldMs = which % 4 === 1 ? this.#setting.leaseMs - (ms % 700) : which % 20;
      return this.#add(1 + (which % 3), this.#isInStall ? which % 20 : which % 4 === 0 ? ms : oldMs, ms % 4);
    }
    if (kind === "answer") return this.#answer(which, says);
    if (kind === "stop") {
      this.#model.stop();
      return keeper.stop();
    }
    const model = [...this.#model.runs.values()].slice(-8).at(-1 - (which % 8));
    if (model === undefined) return;
    const run = this.#run(model);
    switch (kind) {
      case "begin":
        if (model.begunAt !== undefined) return;
        model.begunAt = this.#model.now;
        return keeper.began(run);
      case "next": {
        // Its handler has begun, and ends in time.
        if (!model.isHeld || model.begunAt === undefined || this.#model.leftMs(model) <= 0) return;
        const next = this.#model.next(model)?.key;
        const is = this.#stage.next(model.key);
        if (is !== next)
          this.#problem ??= `after ${model.key} ${is ?? "nothing"} may begin, and should ${next ?? "nothing"}`;
        return;
      }
      case "remove":
        this.#model.drop(model);
        return keeper.remove(run);
      case "progress":
        this.#model.progress(model, ms % 2 === 0 ? 0.5 : 1);
        return run.progress(ms % 2 === 0 ? 0.5 : 1);
      case "doubt": {
        // It is of the lease, whichever item of its run is under it by now.
        const { key } = this.#model.held.find(({ chain }) => chain === model.chain) ?? model;
        if (which % 5 > 0) this.#model.doubt(key);
        return this.#stage.doubt(key, which % 5 > 0);
      }
      case "abort":
        this.#model.abort(model, "STOPPING");
        return this.#stage.abort(model.key);
      case "check":
        return this.#check(model);
      case "pass":
      case "stall":
    }
  }

  #check(model: ModelRun): void {
    let thrown: unknown;
    try {
      this.#run(model).check();
    } catch (error) {
      thrown = error;
    }
    if (!model.isLost && this.#model.leftMs(model) <= 0) {
      model.isLost = true;
      this.#model.abort(model, "LEASE_LOST");
    }
    const code = thrown instanceof Error && "code" in thrown ? String(thrown.code) : undefined;
    if (code !== model.reason)
      this.#problem ??= `check of ${model.key} throws ${code ?? "nothing"}, and should ${model.reason ?? "not"}`;
  }

  #add(count: number, agoMs: number, behind: number): void {
    const room = MOST_HELD - this.#model.held.length;
    const keys = Array.from({ length: Math.min(count, room) }, (_, index) => `k${this.#added + index + 1}`);
    if (keys.length === 0) return;
    this.#added += keys.length;
    this.#stage.add(keys, agoMs, behind);
    const since = this.#model.now - agoMs;
    const runs = keys.map((key) => {
      const names = Array.from({ length: behind }, (_, index) => `${key}.${index + 2}`);
      return this.#model.add(key, since, { since, behind: names, ended: [], isCovering: behind > 0 });
    });
    // They were held while this process stood still, and that is known already.
    const overBefore = (endedAt: number): string =>
      runs
        .filter((run) => this.#model.leftMs(run) <= 0 && run.since < endedAt)
        .map(({ key }) => key)
        .join();
    const told = this.#stage.stalls.slice(this.#stalls);
    if (this.#isInStall) return;
    this.#stalls += told.length;
    const keysTold = told.map((stall) => stall.keys.join()).join(" and ");
    const { stallEndedAt, maybeStallEndedAt } = this.#model;
    const should = [overBefore(stallEndedAt), overBefore(Math.max(stallEndedAt, maybeStallEndedAt))];
    if (!should.includes(keysTold))
      this.#problem ??= `a stall is told of [${keysTold}], and should be of [${should.join("] or [")}]`;
  }

  #answer(which: number, says: KeeperDeed["says"]): void {
    const { asked } = this.#stage;
    const [one] = asked.splice(which % Math.max(1, asked.length), 1);
    if (one === undefined) return;
    if (says === "nothing") {
      this.#model.tell("failed renewing leases");
      this.#model.failed(one.keys);
      return this.#stage.fail(one);
    }
    this.#model.tell("worked renewing leases");
    this.#model.endExpired();
    for (const [index, key] of one.keys.entries()) {
      const said = says[index % says.length];
      this.#model.answered(key, one.since.monotonic, said !== "no", said === "cancel");
    }
    one.reply.resolve(
      one.keys.map((_, index) => {
        const said = says[index % says.length];
        return said === "no" ? { ok: false } : { ok: true, since: one.since, cancelRequested: said === "cancel" };
      }),
    );
  }

  #isInStall = false;

  /** The timer is late: the keeper tells whom it held then, and by how much. */
  async #stall(ms: number, meanwhile: () => void): Promise<void> {
    const { clock, stalls } = this.#stage;
    const model = this.#model;
    const from = model.now;
    const dueAt = model.nextAt;
    const held = model.held.map(({ key }) => key);
    const over = clock.stall(ms);
    model.now += ms;
    const isLate = (lateMs: number): boolean => lateMs >= Math.max(200, this.#setting.leaseMs / 6);
    this.#isInStall = true;
    const heldBefore = new Set(held);
    meanwhile();
    this.#isInStall = false;
    for (; model.nextAt <= model.now;) model.tick();
    await over;
    const told = stalls.slice(this.#stalls);
    this.#stalls = stalls.length;
    // The timer may be set for one that is gone already: then it is late earlier.
    const mustTell = heldBefore.size > 0 && isLate(model.now - dueAt);
    const mayTell = isLate(model.now - from);
    const [stall] = told;
    if (mustTell && stall === undefined) this.#problem ??= `a stall of ${model.now - dueAt} ms is not told`;
    if (stall !== undefined && (!mayTell || told.length > 1)) this.#problem ??= `a stall is told ${told.length} times`;
    if (held.length === 0 && mayTell) model.maybeStallEndedAt = model.now;
    if (stall === undefined) return;
    model.stallEndedAt = model.now;
    const missing = held.filter((key) => !stall.keys.includes(key));
    if (missing.length > 0) this.#problem ??= `a stall is told without ${missing.join()}, which were held`;
    const isPlausible = stall.lateMs <= model.now - from && (dueAt === Infinity || stall.lateMs >= model.now - dueAt);
    if (!isPlausible) this.#problem ??= `a stall of ${ms} ms is told as ${stall.lateMs} ms`;
  }

  async #pass(ms: number): Promise<void> {
    const until = this.#model.now + ms;
    await this.#stage.clock.pass(ms);
    for (let at = this.#model.nextAt; at <= until; at = this.#model.nextAt) {
      this.#model.now = Math.max(this.#model.now, at);
      this.#model.tick();
    }
    this.#model.now = until;
  }

  #run({ key }: ModelRun): ReturnType<KeeperStage["runs"]["get"]> & object {
    const run = this.#stage.runs.get(key);
    if (run === undefined) throw new Error(`There is no run ${key}.`);
    return run;
  }
}
