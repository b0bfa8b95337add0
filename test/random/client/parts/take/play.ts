import type { TakenItem } from "../../../../../src/client/take.ts";
import { isError } from "../../../../../src/domain/realms.ts";
import type { Random } from "../../../../kit/random.ts";
import { agoInstant, grant } from "../granted-run.ts";
import { LEASE_MS, listOf, type RenewMode, type SettleMode, TakeStage, USABLE_MS } from "./stage.ts";

const ABORT_WAIT_MS = 1_000;
const WAYS = ["done", "done", "retry", "retry after", "dead", "release", "dispose"] as const;

export interface TakeDeed {
  readonly kind: "pass" | "take" | "grant" | "settle" | "answer" | "settling" | "renewals" | "call off" | "stop";
  readonly which: number;
  readonly ms: number;
  readonly way: (typeof WAYS)[number];
  readonly wait: "0s" | "forever" | number;
  readonly settling: SettleMode;
  readonly renewals: RenewMode;
}

export function drawTakeDeed(random: Random): TakeDeed {
  const often = ["pass", "pass", "take", "take", "grant", "grant", "settle", "settle", "answer"] as const;
  return {
    kind: random.chance(0.8) ? random.pick(often) : random.pick(["settling", "renewals", "call off", "stop"]),
    which: random.between(0, 99),
    ms: random.pick([random.between(0, 200), random.between(0, 1_500), random.between(0, 5_000), 0]),
    way: random.pick(WAYS),
    wait: random.pick(["0s", "0s", "forever", random.between(1, 2_000)]),
    settling: random.pick(["at once", "at once", "later", "later", "refused", "away"]),
    renewals: random.pick(["kept", "kept", "kept", "taken", "away", "cancelled", "cancelled", "cancelled"]),
  };
}

/** A call to take, and when it must be called off. */
interface Take {
  readonly outer: AbortController;
  readonly isTry: boolean;
  readonly endsAt: number;
  isCalledOff: boolean;
  isAnswered: boolean;
}

interface Mine {
  readonly key: string;
  readonly taken: TakenItem<unknown>;
  isSettled: boolean;
}

export async function playTakes(deeds: readonly TakeDeed[]): Promise<string | undefined> {
  const play = new TakePlay();
  try {
    for (const deed of deeds) {
      play.deed(deed);
      await play.pass(0);
      for (let left = deed.kind === "pass" ? deed.ms : 0; left > 0; left -= 40) await play.pass(Math.min(40, left));
      if (play.problem !== undefined) return `${play.problem}, after ${JSON.stringify(deed)}`;
    }
    return await play.end();
  } finally {
    await play.leave();
  }
}

class TakePlay {
  readonly #stage = new TakeStage();
  readonly #takes: Take[] = [];
  readonly #mine: Mine[] = [];
  #granted = 0;
  #roundTripMs = 10;
  /** Not yet part of that, and after which answer of the store they ended. */
  #roundTrips: { readonly ms: number; readonly answer: number }[] = [];
  #stop: { readonly at: number; readonly graceMs: number; stoppedAt: number | undefined } | undefined;
  #troubles = 0;

  get problem(): string | undefined {
    return this.#stage.problems[0];
  }

  deed(deed: TakeDeed): void {
    const stage = this.#stage;
    if (deed.kind === "take") return this.#take(deed);
    if (deed.kind === "grant") return this.#grant(deed);
    if (deed.kind === "settle") {
      const one = this.#mine.at(-1 - (deed.which % Math.max(1, Math.min(6, this.#mine.length))));
      return one === undefined ? undefined : void this.#settle(one, deed);
    }
    if (deed.kind === "answer") for (const answer of stage.unanswered.splice(0)) answer();
    else if (deed.kind === "settling") stage.settling = deed.settling;
    else if (deed.kind === "renewals") stage.renewals = deed.renewals;
    else if (deed.kind === "call off") this.#takes[deed.which % Math.max(1, this.#takes.length)]?.outer.abort();
    else if (deed.kind === "stop") this.#begunToStop(deed.ms);
  }

  async pass(ms: number): Promise<void> {
    const { clock, claims, workers, taker } = this.#stage;
    await clock.pass(ms);
    const now = clock.monotonic();
    for (const [index, take] of this.#takes.entries()) {
      const { signal } = claims[index]?.request ?? {};
      if (take.isAnswered || signal === undefined) continue;
      const isOver = now >= take.endsAt || (!take.isTry && take.outer.signal.aborted);
      if (signal.aborted !== isOver) this.#blame(`take ${index} is ${isOver ? "not called off" : "called off"}`);
    }
    const hasSome = this.#mine.some(({ isSettled }) => !isSettled);
    if (this.#stop === undefined && workers.has(taker) !== hasSome)
      this.#blame(`closing the connection ${hasSome ? "does not wait" : "waits"} for it`);
    if (this.#stop !== undefined) this.#checkStop(now, hasSome);
    for (const { key, taken, isSettled } of this.#mine)
      if (this.#stage.kept.has(key) && !isSettled && taken.lease.leftMs <= 0 && !taken.lease.signal.aborted)
        this.#blame(`${key} is over, and its signal has not fired`);
  }

  async end(): Promise<string | undefined> {
    const stage = this.#stage;
    stage.settling = "at once";
    stage.renewals = "kept";
    for (const answer of stage.unanswered.splice(0)) answer();
    await this.pass(0);
    for (let count = 0; count < 50; count += 1) {
      await this.pass(100);
      const lost = this.#mine.find(({ taken, isSettled }) => !isSettled && taken.lease.leftMs <= 0);
      if (lost !== undefined && !lost.taken.lease.signal.aborted) return `${lost.key} was not renewed`;
    }
    for (const take of this.#takes) take.outer.abort();
    for (const { reply } of stage.claims) reply.resolve([]);
    for (const take of this.#takes) take.isAnswered = true;
    for (const one of this.#mine) if (!one.isSettled) await this.#settle(one, { way: "release", ms: 0 });
    await this.pass(100_000);
    if (stage.clock.timers > 0) this.#blame(`it left ${stage.clock.timers} timers`);
    return this.problem;
  }

  /** Whoever waits keeps the process alive: also in a play that failed. */
  async leave(): Promise<void> {
    const { claims, clock } = this.#stage;
    for (const { reply } of claims) reply.resolve([]);
    await clock.pass(100_000);
  }

  #blame(what: string): void {
    this.#stage.problems.push(what);
  }

  #take({ which, wait }: TakeDeed): void {
    const { clock, taker, claims } = this.#stage;
    if (this.#stop !== undefined) return;
    const outer = new AbortController();
    if (which % 7 === 0) outer.abort();
    const isTry = wait === "0s" || outer.signal.aborted;
    const waitMs = wait === "0s" ? 0 : wait === "forever" ? Infinity : wait;
    this.#countRoundTrips();
    const tryMs = Math.min(Math.max(this.#roundTripMs * 5, 1), 200);
    const endsAt = clock.monotonic() + (isTry ? tryMs : waitMs);
    const take: Take = { outer, isTry, endsAt, isCalledOff: false, isAnswered: false };
    const max = 1 + (which % 3);
    this.#takes.push(take);
    const answer = taker.take({
      queue: "cars",
      worker: "w",
      max,
      leaseMs: LEASE_MS,
      waitMs,
      patienceMs: 1_000,
      retry: { attempts: 3, backoffMs: 400, maxBackoffMs: 1_000, place: "keep" },
      resultLimit: 1_000,
      signal: which % 2 === 0 || outer.signal.aborted ? outer.signal : undefined,
    });
    if (which % 2 > 0) outer.abort = () => undefined;
    const request = claims.at(-1)?.request;
    if (request?.max !== max) this.#blame(`it asks for ${request?.max ?? "nothing"}, not for ${max}`);
    if (request?.waitMs !== (isTry ? tryMs : waitMs))
      this.#blame(`it tells the store to wait ${request?.waitMs ?? ""}`);
    void answer.then((all) => {
      const keys = all.map(({ lease }) => lease.key);
      const should = this.#expected.get(take) ?? [];
      if (keys.join() !== should.join()) this.#blame(`it hands out [${keys.join()}], not [${should.join()}]`);
      for (const taken of all) this.#mine.push({ key: taken.lease.key, taken, isSettled: false });
    });
  }

  /** The newest weighs most. Of those that end at the same moment, the one whose answer came last is the newest. */
  #countRoundTrips(): void {
    for (const { ms } of this.#roundTrips.toSorted((one, other) => one.answer - other.answer))
      this.#roundTripMs += (ms - this.#roundTripMs) / 8;
    this.#roundTrips = [];
  }

  readonly #expected = new Map<Take, readonly string[]>();

  #grant({ which, ms }: TakeDeed): void {
    const { clock, claims, kept } = this.#stage;
    if (this.#stop !== undefined) return;
    const index = this.#takes.findIndex(({ isAnswered }) => !isAnswered);
    const take = this.#takes[index];
    const claim = claims[index];
    if (take === undefined || claim === undefined) return;
    take.isAnswered = true;
    const ages = Array.from({ length: Math.min(claim.request.max, which % 4) }, (_, nth) =>
      nth === 0 && which % 5 === 0 ? 2_350 + (ms % 300) : which % 5 === 1 ? USABLE_MS : which % 60,
    );
    const grants = ages.map((agoMs) => {
      this.#granted += 1;
      const key = `k${this.#granted}`;
      if (agoMs < USABLE_MS) kept.add(key);
      return { agoMs, grant: grant(key, agoInstant(clock, agoMs), 2) };
    });
    const isGood = ({ agoMs }: { readonly agoMs: number }): boolean => agoMs < USABLE_MS;
    this.#expected.set(
      take,
      grants.filter(isGood).map((one) => one.grant.lease.key),
    );
    claim.reply.resolve(grants.map((one) => one.grant));
    void this.#checkLate(grants.filter((one) => !isGood(one)).map((one) => one.grant.lease.key));
  }

  /** What ran out on its way goes back, and nobody has it. */
  async #checkLate(keys: readonly string[]): Promise<void> {
    const { events, settled, answers } = this.#stage;
    if (keys.length === 0) return;
    const mode = this.#stage.settling;
    await new Promise<void>((resolve) => this.#stage.clock.setTimer(0, resolve));
    for (const key of keys) {
      const ways = listOf(settled, key).map(({ type }) => type);
      if (ways.join() !== "release") this.#blame(`${key} came too late, and ends with [${ways.join()}]`);
      const should = answers.get(key) === "settled" ? "released" : "lost late";
      if (mode !== "later" && listOf(events, key).join() !== should)
        this.#blame(`${key} came too late, and is told as ${listOf(events, key).join()}, not as ${should}`);
    }
  }

  async #settle(one: Mine, { way, ms }: Pick<TakeDeed, "way" | "ms">): Promise<void> {
    const { key, taken } = one;
    const { clock, settled, answers, kept, events } = this.#stage;
    const { lease } = taken;
    const before = listOf(settled, key).length;
    const isSecond = one.isSettled;
    const isGone = lease.leftMs <= 0;
    const isCancelled = listOf(events, key).includes("cancelling");
    const isToldLost = listOf(events, key).some((event) => event.startsWith("lost"));
    const troublesBefore = this.#stage.troubles;
    const began = clock.monotonic();
    one.isSettled = true;
    kept.delete(key);
    let code: unknown;
    try {
      await call(taken, way, ms);
    } catch (error) {
      code = isError(error) && "code" in error ? error.code : error;
    }
    const asked = listOf(settled, key).slice(before);
    if (isSecond || isGone) {
      if (asked.length > 0) this.#blame(`${key} is settled, and was ${isSecond ? "settled already" : "lost"}`);
      if ((isSecond || isToldLost) && way === "dispose" && this.#stage.troubles > troublesBefore)
        this.#blame(`${key} could not be given back, and nobody had it`);
      const should = way === "dispose" ? undefined : "LEASE_LOST";
      if (code !== should) this.#blame(`${way} of ${key} throws ${String(code)}, not ${String(should)}`);
      return;
    }
    this.#roundTrips.push({ ms: clock.monotonic() - began, answer: this.#stage.answerNumbers.get(key) ?? 0 });
    const type =
      isCancelled && way !== "done" ? "cancelled" : way === "dispose" ? "release" : way.split(" ", 1).join("");
    if (asked.length === 0 || asked.some((ending) => ending.type !== type))
      this.#blame(`${way} of ${key} settles with [${asked.map((ending) => ending.type).join()}], not ${type}`);
    for (const ending of asked) {
      const delayMs = way === "retry after" ? ms : 400;
      if (ending.type === "retry" && ending.delayMs !== delayMs)
        this.#blame(`${key} is tried again in ${ending.delayMs}, not in ${delayMs}`);
    }
    const isGood = answers.get(key) === "settled";
    if (way === "dispose") this.#troubles += isGood ? 0 : 1;
    if (code !== (isGood || way === "dispose" ? undefined : "LEASE_LOST"))
      this.#blame(`${way} of ${key} throws ${String(code)}`);
    if (this.#stage.troubles < Math.min(1, this.#troubles)) this.#blame("giving back failed, and is not told");
  }

  #begunToStop(graceMs: number): void {
    const { clock, taker } = this.#stage;
    if (this.#stop !== undefined) return;
    const stop = { at: clock.monotonic(), graceMs, stoppedAt: undefined };
    const mine: NonNullable<TakePlay["stopping"]> = stop;
    this.#stop = mine;
    void taker.stop({ grace: graceMs }).then(() => (mine.stoppedAt = clock.monotonic()));
  }

  get stopping(): { readonly at: number; readonly graceMs: number; stoppedAt: number | undefined } | undefined {
    return this.#stop;
  }

  #checkStop(now: number, hasSome: boolean): void {
    const { at, graceMs, stoppedAt } = this.#stop ?? { at: 0, graceMs: 0, stoppedAt: 0 };
    const until = at + graceMs + ABORT_WAIT_MS;
    const isOver = stoppedAt !== undefined;
    if (!isOver && (now >= until || !hasSome)) this.#blame("it should have stopped");
    if (isOver && hasSome && now < until) this.#blame("it stopped too early");
    for (const { key, taken, isSettled } of this.#mine) {
      if (isSettled) continue;
      const reason: unknown = taken.lease.signal.reason;
      const code = isError(reason) && "code" in reason ? reason.code : undefined;
      if (now >= at + graceMs && code === undefined) this.#blame(`${key} is not told that it stops`);
      if (now < at + graceMs && code === "STOPPING") this.#blame(`${key} is told too early that it stops`);
      if (isOver) this.#stage.kept.delete(key);
    }
  }
}

async function call(taken: TakenItem<unknown>, way: TakeDeed["way"], ms: number): Promise<void> {
  switch (way) {
    case "done":
      return await taken.done("fine");
    case "retry":
      return await taken.retry("no");
    case "retry after":
      return await taken.retry("no", { after: ms });
    case "dead":
      return await taken.dead("no");
    case "release":
      return await taken.release();
    case "dispose":
      return await taken[Symbol.asyncDispose]();
  }
}
