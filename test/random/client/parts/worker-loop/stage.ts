import { setImmediate as turn } from "node:timers/promises";
import { BatonError, Fatal, LeaseLost } from "../../../../../src/domain/errors.ts";
import { isError } from "../../../../../src/domain/realms.ts";
import type * as port from "../../../../../src/engine/port.ts";
import { memoryEngine } from "../../../../../src/engines/memory/index.ts";
import type { WorkerEvent } from "../../../../../src/worker/events.ts";
import type { HeldLease } from "../../../../../src/worker/held-item.ts";
import { Outages } from "../../../../../src/worker/outages.ts";
import { WorkerLoop } from "../../../../../src/worker/worker-loop.ts";
import type { ManualClock } from "../../../../manual-clock.ts";
import { PassThrough } from "../../../../pass-through.ts";
import { agoInstant, grant } from "../granted-run.ts";
import type { LoopDeed, LoopSetting } from "./deeds.ts";
import { GrantedLease, type Seen } from "./leases.ts";
import type { Together } from "./together.ts";

export const LEASE_MS = 3_000;
/** A handler that takes longer gets one item at a time, and no key before a slot is free for it. */
const QUICK_MS = 5;
const NEWEST_SHARE = 1 / 8;
const MOST_AHEAD = 256;
/** Where no key has a line it need not be asked for what is behind, but for now and then. */
const MOST_SINGLES = 15;
const MOST_ITEMS = 64;
/** A second claim is worth while for so many. */
const GOOD_SHARE = 128;
/** Whoever waits to run alone has lost so many leases. */
const SUSPECT_LOSSES = 2;

export interface Claim {
  readonly request: port.ClaimRequest;
  readonly reply: PromiseWithResolvers<readonly port.Grant[]>;
}

/** A real loop with a store whose every answer is given by a script. */
export class LoopStage extends PassThrough {
  override readonly runs: boolean;
  readonly clock: ManualClock;
  readonly loop: WorkerLoop;
  readonly leases: Map<string, GrantedLease> = new Map();
  readonly items: Map<string, Seen> = new Map();
  readonly claims: Set<Claim> = new Set();
  readonly problems: string[] = [];
  readonly looks: number[] = [];
  declared = 0;
  running = 0;
  stopping = false;
  /** It has stopped: what ignores its signal is left to itself, and the others go on. */
  leavesAt: number = Infinity;
  /** Called by a handler that stops its worker. */
  onStop: () => void = () => undefined;
  /** Called when a claim that was called off fails, as the store is away. */
  onRefused: () => void = () => undefined;
  /** Called when one brings something all the same. */
  onHeard: () => void = () => undefined;
  renewals: LoopDeed["renewals"] = "kept";
  settling: LoopDeed["settling"] = "at once";
  report: LoopDeed["report"] = "there";
  readonly unanswered: (() => void)[] = [];
  readonly #setting: LoopSetting;
  readonly #name: string;
  readonly #together: Together;
  readonly #fresh = new Set<GrantedLease>();
  /** Not over, as far as was seen. */
  readonly #open = new Set<GrantedLease>();
  /** Slots that were asked for with settlements, which the worker may not know to be answered. */
  #inTransit = 0;
  /** A run was over before all of its items had begun: the next ones may be as short as one item. */
  #isAnyCut = false;
  /** How many items have ended. */
  #ended = 0;
  #meanMs = Infinity;
  #isLastFull = false;
  #isAnyAnswer = false;
  /** Claims in a row that asked for no runs after one that did and found no key with more than one item. Undefined: there was none such. */
  #singles: number | undefined;
  /** A key went back that had not begun: perhaps it was kept for too long, and then nothing is taken ahead before the next full answer. */
  #isAnyBack = false;

  constructor(setting: LoopSetting, name: string, clock: ManualClock, together: Together) {
    super(memoryEngine({ clock }));
    this.clock = clock;
    this.runs = setting.runs;
    this.#setting = setting;
    this.#name = name;
    this.#together = together;
    together.loops.push(this);
    const emit = (event: WorkerEvent): void => this.#hear(event);
    const parts = { engine: this, clock, random: () => 0.5, emit, outages: new Outages(clock, emit) };
    const settings = {
      queue: "cars",
      name: "w",
      concurrency: setting.concurrency,
      leaseMs: LEASE_MS,
      patienceMs: 1_000,
      retry: { attempts: setting.attempts, backoffMs: 100, maxBackoffMs: 1_000, place: "keep" as const },
      resultLimit: 1_000,
      timeoutMs: setting.timeoutMs,
    };
    this.loop = new WorkerLoop(
      parts,
      settings,
      (item, lease) => this.#handle(this.item(item.id), lease),
      () => Promise.resolve((this.declared += 1)),
    );
  }

  /** Slots that nothing runs in, nothing is kept for, and nothing was asked for. */
  get free(): number {
    const out = [...this.claims].reduce((sum, { request }) => sum + request.max, 0);
    const nexts = this.open.filter(({ isNextAsked }) => isNextAsked).length;
    return this.#setting.concurrency - this.running - out - nexts - this.kept.length;
  }

  /** Leases that wait for a slot, first come first. */
  get kept(): readonly GrantedLease[] {
    const now = this.clock.monotonic();
    const { attempts } = this.#setting;
    return this.unbegun.filter((lease) => this.mayWait(lease) && !lease.isHopeless(attempts) && !lease.isStale(now));
  }

  /** Those that are not to begin may be kept until it is their turn. */
  get unbegun(): readonly GrantedLease[] {
    for (const lease of this.#fresh) if (lease.isBegun || lease.isSettled) this.#fresh.delete(lease);
    return [...this.#fresh];
  }

  /** It need not go back at once. */
  mayWait(lease: GrantedLease): boolean {
    return !lease.isSuspect && !lease.isUnwanted && !lease.isStale(this.clock.monotonic());
  }

  get isQuiet(): boolean {
    const isOpen = (lease: GrantedLease): boolean => !this.#together.waiting.has(lease);
    const hasLeft = this.clock.monotonic() >= this.leavesAt;
    return hasLeft || (this.claims.size === 0 && this.running === 0 && !this.open.some(isOpen));
  }

  /** Those of which something is still to be told. */
  get open(): readonly GrantedLease[] {
    for (const lease of this.#open) if (isOver(lease)) this.#open.delete(lease);
    return [...this.#open];
  }

  hushed(): void {
    for (const lease of this.unbegun) if (!lease.isSuspect) lease.isUnwanted = true;
  }

  stop(): void {
    this.stopping = true;
    for (const lease of this.unbegun) {
      this.#together.over(lease);
      lease.isUnwanted = true;
    }
  }

  /** A handler that runs is told how to end. */
  end(seen: Seen, how: "returned" | "threw" | "fatal"): void {
    if (seen.ended !== undefined || seen.held === undefined) return;
    if (how === "returned") seen.end.resolve("fine");
    else seen.end.reject(how === "fatal" ? new Fatal("no") : new Error("no"));
  }

  grant(
    claim: Claim,
    deed: Pick<LoopDeed, "count" | "works" | "attempt" | "behind" | "losses" | "suspects">,
    agoMs: number,
  ): void {
    this.claims.delete(claim);
    const { max, items: most = 1 } = claim.request;
    const count = Math.min(deed.count, max);
    const since = agoInstant(this.clock, agoMs);
    const grants = Array.from({ length: count }, (_, index) => {
      const losses = index < deed.suspects ? deed.losses : 0;
      const isInnocent = losses === 0 && deed.attempt === 1;
      const behind = isInnocent ? Math.min(deed.behind, most - 1) : 0;
      return this.#grant(`${this.#name}${this.leases.size + 1}`, agoMs, { ...deed, losses, behind }, since);
    });
    if (count > 0) {
      // Where each key brings a run, fewer of them are enough.
      this.#isLastFull = count === max && grants.every(({ behind }) => behind === undefined);
      this.#isAnyAnswer = true;
      this.#isAnyBack = false;
      if (most > 1) this.#singles = grants.some(({ behind }) => behind !== undefined) ? undefined : 0;
      else if (this.#singles !== undefined) this.#singles += 1;
    }
    claim.reply.resolve(grants);
  }

  #grant(
    key: string,
    agoMs: number,
    { works, attempt, behind, losses }: Pick<LoopDeed, "works" | "attempt" | "behind" | "losses">,
    since: port.Lease["since"],
  ): port.Grant {
    const { lease, item: first } = grant(key, since, attempt);
    const hasMore = this.#share(this.leases.size);
    const granted = new GrantedLease(lease, this.clock.monotonic(), LEASE_MS - 500 - agoMs, hasMore);
    const items = [{ ...first, ...(losses === 0 ? {} : { losses }) }];
    for (let index = 1; index <= behind; index += 1) items.push({ ...first, id: `${key}.${index + 1}` });
    for (const [index, item] of items.entries()) {
      const work = works[(this.items.size + index) % works.length] ?? { style: "waits", ms: 0 };
      granted.items.push({
        id: item.id,
        item,
        work,
        lease: granted,
        index,
        held: undefined,
        begunAt: 0,
        end: Promise.withResolvers(),
        ended: undefined,
        events: [],
        settled: [],
        lastAnswer: undefined,
      });
    }
    for (const seen of granted.items) this.items.set(seen.id, seen);
    this.leases.set(key, granted);
    this.#fresh.add(granted);
    this.#open.add(granted);
    const mayStay = !this.stopping && !this.#together.isWanted;
    granted.isUnwanted = !mayStay;
    // A second one goes back like any other: it would lose its lease with the process.
    if (mayStay && losses >= SUSPECT_LOSSES && attempt <= this.#setting.attempts) {
      granted.isSuspect = true;
      this.#together.wait(granted);
    }
    const [item = first, ...others] = items;
    return { lease, item, ...(others.length === 0 ? {} : { behind: others }), ...(hasMore ? { more: true } : {}) };
  }

  /** Whether it is so for this one of many. */
  #share(which: number): boolean {
    return (which * 0.37) % 1 < this.#setting.moreShare;
  }

  override claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    this.#checkClaim(request);
    const claim: Claim = { request, reply: Promise.withResolvers() };
    this.claims.add(claim);
    request.signal.addEventListener("abort", () => void this.#calledOff(claim));
    return claim.reply.promise;
  }

  #checkClaim({ max, items, signal }: port.ClaimRequest): void {
    const { free, problems, claims } = this;
    const { attempts, concurrency, runs } = this.#setting;
    if (this.stopping) problems.push("it claims after it was stopped");
    if (signal.aborted) problems.push("it claims, and has called that off before");
    if (this.#together.isWanted) problems.push("it claims, and something is to run alone");
    if (claims.size > 0 && max < GOOD_SHARE) problems.push("it asks a second time for a few slots");
    if (claims.size > 1) problems.push("it asks a third time");
    const isQuick = this.#meanMs < QUICK_MS && attempts > 1;
    const isAhead = isQuick && this.#isLastFull;
    const mayBeAhead = isQuick && this.#isAnyAnswer;
    // Those that are not to begin may be kept or not.
    const hopeless = this.unbegun.filter((lease) => lease.isHopeless(attempts) && this.mayWait(lease));
    // It may ask for more of these keys together with their end, a moment later.
    const goingOn = this.open.filter(
      ({ last, isSettled, hasNext }) => last?.ended !== undefined && !isSettled && hasNext,
    );
    const least = free - hopeless.length - goingOn.length - this.#inTransit;
    const most = Math.max(0, free) + (mayBeAhead ? MOST_AHEAD : 0);
    if (max > most || max < Math.max(1, least)) problems.push(`it asks for ${max}, and ${free} slots are free`);
    // What was kept for too long is given back in the same turn, a moment later.
    const isAnyStale = this.unbegun.some((lease) => lease.isStale(this.clock.monotonic()));
    if (isAhead && !this.#isAnyBack && !isAnyStale && least === concurrency && max <= free)
      problems.push(`its handler is quick, and it asks for no more than ${max}`);
    const isRun = items !== undefined && items > 1 && items <= MOST_ITEMS;
    const isSingle = items === 1 && this.#singles !== undefined && this.#singles < MOST_SINGLES;
    const isShort = items === 1 && this.#isAnyCut;
    if (isQuick && runs ? !isRun && !isSingle && !isShort : items !== 1)
      problems.push(`it asks for ${items ?? 1} items at a time, and its handler takes ${this.#meanMs} ms`);
  }

  /** A claim that is called off answers a little later, perhaps with a grant that was on its way. */
  async #calledOff(claim: Claim): Promise<void> {
    const { racing, racingAfterMs, isRefused } = this.#setting;
    if (racingAfterMs > 0) await new Promise<void>((resolve) => this.clock.setTimer(racingAfterMs, resolve));
    if (!this.claims.has(claim)) return;
    const works = [{ style: "waits", ms: 0 }] as const;
    if (!isRefused && racing > 0) this.onHeard();
    if (!isRefused)
      return this.grant(
        claim,
        { count: racing, works, attempt: 1, behind: 1, losses: racing > 1 ? 2 : 0, suspects: 1 },
        0,
      );
    this.claims.delete(claim);
    this.onRefused();
    claim.reply.reject(new BatonError("STORE_UNAVAILABLE", "No."));
  }

  override async renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    const since = agoInstant(this.clock, 0);
    const mode = this.renewals;
    const isHeard = mode !== "away" && mode !== "taken";
    const covered = renewals.map(({ lease, ended }) => {
      const granted = this.#lease(lease.key);
      const problem = granted.hear(ended, isHeard ? "renewed" : "unheard");
      if (problem !== undefined) this.problems.push(problem);
      granted.isClosed = true;
      return { granted, ended: granted.items.filter(({ id }) => ended?.some((one) => one.id === id) === true) };
    });
    if (mode === "later") await new Promise<void>((resolve) => this.unanswered.push(resolve));
    else await turn();
    if (mode === "away" || mode === "unheard") throw new BatonError("STORE_UNAVAILABLE", "No.");
    if (mode === "taken") return renewals.map(() => ({ ok: false }));
    for (const { granted, ended } of covered) {
      // One that is settled, or lost, has no use for the answer.
      if (granted.isSettled || granted.isLossTold || granted.last?.ended !== undefined) continue;
      granted.isSingle = true;
      for (const seen of ended) seen.lastAnswer = "settled";
    }
    return renewals.map(() => ({ ok: true, since, cancelRequested: mode === "cancelled" }));
  }

  override async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    const asked = settlements.filter(({ next }) => next !== undefined).length;
    try {
      return await this.#settle(settlements);
    } finally {
      if (this.settling !== "away") {
        for (const { lease } of settlements) this.#lease(lease.key).isNextAsked = false;
        this.#inTransit += asked;
        // The worker hears of the answer within this turn.
        setImmediate(() => (this.#inTransit -= asked));
      }
    }
  }

  async #settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    for (const { lease, ended, ending, next } of settlements) {
      const granted = this.#lease(lease.key);
      const problem =
        granted.hear(ended, "settled") ?? this.#together.turn(granted) ?? this.#checkNext(granted, ending, next);
      if (problem !== undefined) this.problems.push(problem);
      if (!granted.isBegun) {
        this.#checkUnbegun(granted, ending.type);
        this.#isAnyBack = true;
      }
      granted.isSettled = true;
      const last = granted.last ?? granted.first;
      last.settled.push(ending.type);
      last.lastAnswer = undefined;
    }
    const order = settlements.flatMap(({ lease }) => this.#lease(lease.key).endedAs ?? []);
    if (order.some((one, index) => one < (order[index - 1] ?? 0)))
      this.problems.push(`what ended as ${order.join(", ")} is settled in another order`);
    const since = agoInstant(this.clock, 0);
    if (this.settling === "later") await new Promise<void>((resolve) => this.unanswered.push(resolve));
    const mode = this.settling;
    const result = mode === "refused" ? "lost" : "settled";
    for (const { lease } of settlements) {
      const granted = this.#lease(lease.key);
      const answer = mode === "away" ? "none" : result;
      const told = granted.items.filter((seen) => seen.settled.length > 0 && seen.lastAnswer !== "settled");
      for (const seen of told) seen.lastAnswer = answer;
      // What is lost already is not tried again.
      if (mode !== "away" || granted.isLossTold) this.#together.over(granted);
    }
    if (mode === "away") throw new BatonError("STORE_UNAVAILABLE", "No.");
    return settlements.map(({ next }) => this.#next(next, since) ?? result);
  }

  /** The key goes on, for some of those who ask. */
  #next(next: port.NextRequest | undefined, since: port.Lease["since"]): port.Grant | undefined {
    const number = this.leases.size + 1;
    // It must come to an end within a turn of the script.
    const isLong = number % 4 === 0;
    if (next === undefined || this.settling === "refused" || isLong || !this.#share(number * 3)) return undefined;
    const behind = Math.min(number % 3, (next.items ?? 1) - 1);
    const works = [...this.items.values()].slice(-5).map(({ work }) => work);
    const agoMs = this.clock.monotonic() - since.monotonic;
    return this.#grant(`${this.#name}${number}`, agoMs, { works, attempt: 1, behind, losses: 0 }, since);
  }

  #checkNext(lease: GrantedLease, ending: port.Ending, next: port.NextRequest | undefined): string | undefined {
    if (next === undefined) return undefined;
    lease.isNextAsked = true;
    const hasEnded = ending.type !== "retry" && ending.type !== "release";
    if (!hasEnded) return `${lease.key} is settled as ${ending.type}, and is to go on`;
    if (!lease.hasNext) return `${lease.key} is to go on, and has nothing more`;
    const most = this.runs && this.#setting.attempts > 1 ? MOST_ITEMS : 1;
    return (next.items ?? 1) > most ? `${lease.key} is to go on with ${next.items ?? 1} items` : undefined;
  }

  /** Why it goes back, or ends, although no handler was called. */
  #checkUnbegun(lease: GrantedLease, ending: string): void {
    const { attempts } = this.#setting;
    const isExhausted = lease.first.item.attempt > attempts;
    const hasRunOut = this.clock.monotonic() >= lease.grantedAt + lease.leftAtGrantMs;
    const mayGoBack = hasRunOut || lease.isHopeless(attempts) || !this.mayWait(lease);
    if (!mayGoBack) this.problems.push(`${lease.key} was to begin, and is settled as ${ending}`);
    const allowed = ["release", ...(isExhausted ? ["dead"] : []), ...(lease.isCancelled ? ["cancelled"] : [])];
    if (!allowed.includes(ending)) this.problems.push(`${lease.key} is settled as ${ending}, and was not begun`);
    const mustEnd = lease.isCancelled && lease.isSuspect && !lease.isUnwanted && !lease.isLossTold;
    if (mustEnd && ending !== "cancelled") this.problems.push(`${lease.key} is cancelled, and goes back`);
  }

  override queues(): Promise<readonly port.QueueReport[]> {
    this.looks.push(this.clock.monotonic());
    if (this.stopping) this.problems.push("it looks for the store, and was stopped");
    if (this.report === "away") return Promise.reject(new BatonError("STORE_UNAVAILABLE", "No."));
    if (this.report === "refused") return Promise.reject(new BatonError("STORE_FULL", "No."));
    const counts = { waiting: 0, delayed: 0, running: 0, dead: 0 };
    return Promise.resolve(this.report === "missing" ? [] : [{ queue: "cars", paused: false, levels: [], ...counts }]);
  }

  #handle(seen: Seen, held: HeldLease): unknown {
    const { id, work } = seen;
    this.#checkBegin(seen, held);
    seen.held = held;
    seen.begunAt = this.clock.monotonic();
    this.running += 1;
    if (this.running > this.#setting.concurrency) this.problems.push(`${this.running} handlers run`);
    if (work.style === "throws at once") {
      this.#note(seen, "threw");
      throw new Error("no");
    }
    if (work.style === "stops the worker") this.onStop();
    if (work.style === "stops the worker" || work.style === "returns at once") {
      this.#note(seen, "returned");
      return id;
    }
    if (work.style === "obeys") held.signal.addEventListener("abort", () => this.end(seen, "threw"));
    if (work.style === "takes") this.clock.setTimer(work.ms, () => this.end(seen, "returned"));
    // The loop hears of it next.
    const { promise } = seen.end;
    promise.then(
      () => this.#note(seen, "returned"),
      (threw: unknown) => this.#note(seen, threw instanceof Fatal ? "fatal" : "threw"),
    );
    return promise;
  }

  #checkBegin({ id, item, index, held: before, lease }: Seen, held: HeldLease): void {
    const blame = (what: string): void => void this.problems.push(`${id} begins ${what}`);
    if (this.stopping) blame("after the stop");
    if (before !== undefined) blame("twice");
    if (item.attempt > this.#setting.attempts) blame("after all its attempts");
    if (held.leftMs <= 0) blame("when its lease is over");
    if (lease.isSettled) blame("after its lease was settled");
    if (index > 0) {
      if (lease.items[index - 1]?.ended?.goesOn !== true) blame("although its run is over");
      return;
    }
    if (lease.isCancelled) blame("although it was cancelled");
    if (!lease.isSuspect && this.#together.isWanted) blame("while another is to run alone");
    if (lease.isUnwanted) blame("and was to go back");
    if (!lease.isSuspect && lease.isStale(this.clock.monotonic())) blame("after it was kept for too long");
    const [next = lease] = this.kept;
    if (!lease.isSuspect && next !== lease) blame(`before ${next.key}, which came first`);
    const problem = this.#together.turn(lease);
    if (problem !== undefined) this.problems.push(problem);
  }

  #note(seen: Seen, how: "returned" | "threw" | "fatal"): void {
    this.running -= 1;
    const { held, lease } = seen;
    const now = this.clock.monotonic();
    const tookMs = now - seen.begunAt;
    this.#meanMs = this.#meanMs === Infinity ? tookMs : this.#meanMs + (tookMs - this.#meanMs) * NEWEST_SHARE;
    const { signal, leftMs = 0 } = held ?? {};
    const isAborted = signal?.aborted === true;
    const reason: unknown = signal?.reason;
    const code = isError(reason) && "code" in reason ? reason.code : undefined;
    const given = how === "fatal" || seen.item.attempt >= this.#setting.attempts ? "dead" : "retry";
    // A stop that comes after another reason gives back what that one ended, unless it was its time that was up.
    const isReleased = this.stopping && isAborted && code !== "HANDLER_TIMEOUT";
    const failed =
      code === "CANCELLED" || seen.events.includes("cancelling") ? "cancelled" : isReleased ? "release" : given;
    const ending = reason instanceof LeaseLost || leftMs <= 0 ? "none" : how === "returned" ? "done" : failed;
    const mayBegin = !this.stopping && !isAborted && !this.#together.isWanted;
    seen.ended = { ending, goesOn: ending === "done" && mayBegin && lease.mayGoOn(seen, now) };
    lease.endedAs = this.#ended += 1;
    if (ending === "done" && !seen.ended.goesOn && seen.index + 1 < lease.items.length) this.#isAnyCut = true;
  }

  #hear(event: WorkerEvent): void {
    if (event.type === "trouble" && event.doing === "asking for work" && this.stopping)
      this.problems.push("it tells that it cannot ask, and was stopped");
    if (!("item" in event)) return;
    const seen = this.item(event.item.id);
    seen.events.push("why" in event ? `lost ${event.why}` : event.type);
    const { lease, index } = seen;
    if (isOverBy(event.type)) {
      const isFirst = lease.items.slice(0, index).every((one) => one.events.some(isOverBy));
      if (!isFirst) this.problems.push(`${seen.id} is told to be ${event.type} before those in front of it`);
      if (seen === lease.last) this.#together.over(lease);
    }
    if (event.type === "lost" && !lease.isBegun && lease.isSettled) this.#together.over(lease);
  }

  #lease(key: string): GrantedLease {
    const lease = this.leases.get(key);
    if (lease === undefined) throw new Error(`${key} was never granted.`);
    return lease;
  }

  item(id: string): Seen {
    const seen = this.items.get(id);
    if (seen === undefined) throw new Error(`${id} was never granted.`);
    return seen;
  }
}

const OVER = new Set(["done", "retry", "dead", "cancelled", "released", "discarded"]);

export function isOverBy(event: string): boolean {
  return OVER.has(event);
}

/** Nothing more will be told of it. */
export function isOver({ isBegun, isSettled, first, last, isLossTold }: GrantedLease): boolean {
  const isGivenUp = isSettled && isLossTold && first.lastAnswer !== undefined;
  if (!isBegun) return isGivenUp || first.events.some(isOverBy);
  return last?.ended !== undefined && last.events.some(isOverBy);
}
