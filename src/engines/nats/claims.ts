/**
 * Hands out ready keys. While claims have free slots the consumers are asked level by level, most urgent first. A level that has
 * nothing gets a pull that stands at the server: until it brings something, nobody has to ask there again. What comes is
 * started at once for the claim that came first, or goes back.
 */
import type { Clock, Timer } from "../../domain/clock.ts";
import type { ClaimRequest, Grant } from "../../engine/port.ts";
import { Damaged } from "./damage.ts";
import { Forgotten } from "./forgotten.ts";
import { announcedBy, type KeyStore } from "./key-store.ts";
import { Lag } from "./lag.ts";
import type { Leases } from "./leases.ts";
import type { Held } from "./own-leases.ts";
import { Patience } from "./patience.ts";
import type { Pulled, Pulls } from "./pulls.ts";
import type { KeyItem, Seen } from "./state.ts";
import { readToken, type Token } from "./token.ts";
import { sendUnanswered } from "./unanswered.ts";
import { type Coming, WaitingClaim } from "./waiting-claim.ts";
import type { Wire } from "./wire.ts";

/** Pulls stay at the server for so long for a worker that was just answered: one that is quick is back by then. */
const QUICK_MS = 20;
/** A key that takes longer to start is overtaken by those behind it. */
const SLOW_MS = 1_000;
/** After something failed: the server is away, choosing a leader, or full. */
const REST_MS = 100;
/** Whoever has brought something more urgent may do so again within this. */
const URGENT_MS = 60_000;

/** What has come due, or a back-off that is over. */
export interface Due {
  /** Takes it in, before anything is handed out; undefined: there is nothing. */
  takeIn(): Promise<unknown> | undefined;
  /** Nobody waits here, and nothing is in work: then nobody asks for it. */
  withdraw(): void;
}

export interface ClaimsParts {
  readonly store: KeyStore;
  readonly leases: Leases;
  readonly pulls: Pulls;
  readonly wire: Wire;
  readonly due: Due;
}

export class Claims {
  readonly #store: KeyStore;
  readonly #leases: Leases;
  readonly #pulls: Pulls;
  readonly #wire: Wire;
  readonly #clock: Clock;
  readonly #due: Due;
  readonly #patience: Patience;
  readonly #forgotten: Forgotten;
  /** Of a cluster, where what is more urgent may come later. */
  readonly #lag: Lag;
  readonly #waiting: WaitingClaim[] = [];
  /** Keys that have come, while it is looked whether something more urgent should come first, by level. */
  readonly #unsure = new Map<number, Token[]>();
  /** Keys that were not started here, until the server has them again. */
  readonly #goingBack = new Set<Promise<unknown>>();
  readonly #starting = new Set<Promise<unknown>>();
  /** Per level: when something last came. */
  readonly #arrivedAt: number[] = [];
  /** The level that is being asked out of turn. */
  #outOfTurn: number | undefined;
  /** When a claim last ended, by the monotonic clock. */
  #leftAt = Number.NEGATIVE_INFINITY;
  #isStirred = false;
  #isAsking = false;
  #isPulling = false;
  #isResting = false;
  #leaving: Timer | undefined;
  #slow: Timer | undefined;
  #closed = false;

  constructor({ store, leases, pulls, wire, due }: ClaimsParts) {
    this.#store = store;
    this.#leases = leases;
    this.#pulls = pulls;
    this.#wire = wire;
    this.#due = due;
    this.#clock = store.clock;
    this.#patience = new Patience(store, pulls);
    this.#lag = new Lag(store);
    this.#forgotten = new Forgotten(store, () => this.#closed);
  }

  claim(request: ClaimRequest): Promise<readonly Grant[]> {
    const { signal } = request;
    if (signal.aborted || this.#closed) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      const claim = new WaitingClaim(request, this.#clock.monotonic(), resolve, reject);
      const giveUp = (): void => {
        this.#end(claim);
        this.#releaseAll(claim);
        resolve([]);
        this.withdraw();
      };
      signal.addEventListener("abort", giveUp, { once: true });
      claim.onEnd = () => signal.removeEventListener("abort", giveUp);
      this.#waiting.push(claim);
      this.stir();
    });
  }

  /** Somebody waits for keys, or will in a moment: a pull may stand at the server for him. */
  get isWanted(): boolean {
    if (this.#closed) return false;
    return this.#waiting.length > 0 || this.#clock.monotonic() - this.#leftAt < QUICK_MS;
  }

  /** Nobody waits any more, or the last lease of this process has ended: what stands at the server would be sent here, and be late for others. */
  withdraw(): void {
    if (this.#closed || this.#waiting.length > 0) return;
    this.#pulls.withdraw();
    this.#due.withdraw();
  }

  /** Nothing can be handed out, and whoever waits should know why. */
  refuse(error: Error): void {
    for (const claim of this.#waiting.slice()) {
      this.#end(claim);
      this.#releaseAll(claim);
      claim.reject(error);
    }
  }

  /** A pull brought something. */
  arrive(level: number, pulled: Pulled): void {
    this.#arrivedAt[level] = this.#clock.monotonic();
    const token = readToken(pulled);
    if (token === undefined) {
      // A message that Baton did not write must not keep its level from being handed out.
      sendUnanswered(this.#wire, pulled.reply, "+TERM");
      this.stir();
    } else if (level > 0 && level !== this.#outOfTurn && this.#lag.isPossible) void this.#takeInTurn(level, token);
    else this.#take(level, token);
  }

  /**
   * A key that this process has just taken from somebody who is gone. If nothing is ahead of it, it is started here: its consumer might
   * hand it to the very process that stands still, and to nobody else for a second. In a cluster it is looked anyway whether anything is.
   */
  offer(token: Token): void {
    const level = token.seen.state.items[0]?.level ?? 0;
    if (!this.#lag.isPossible && !this.#areEmpty(level + 1)) return;
    if (this.#claimFor(level) !== undefined) this.#take(level, token);
  }

  /**
   * An item for an idle key, while a claim waits here and nothing else is ready: it is submitted and started by one write. If a pull brings
   * something more urgent before that is heard of, that goes first, and the key goes back with no attempt counted. Undefined: the
   * item has to come by its consumer. So it is in a cluster, where it would have to be looked whether something more urgent is ready.
   */
  startHere(key: string, item: KeyItem): Promise<Seen | undefined> | undefined {
    if (this.#closed || this.#isResting || this.#isAsking || this.#lag.isPossible) return undefined;
    if (this.#goingBack.size > 0 || !this.#areEmpty(this.#store.levels)) return undefined;
    const { level } = item;
    const claim = this.#waiting.find(({ open }) => open > 0);
    const first = claim === undefined ? undefined : this.#leases.startFirst(key, item, claim.claimant);
    if (claim === undefined || first === undefined) return undefined;
    // A server that is busy may answer the write before it has handed out what was there first.
    const looked = this.#isUrgentAbout(level) ? this.#store.isReadyAbove(level).catch(() => false) : undefined;
    const coming = this.#expect(claim, level, true);
    const started = first.held.then((held) =>
      looked === undefined || held === undefined
        ? this.#started(claim, coming, held)
        : looked.then((isUrgent) => this.#started(claim, coming, held, !isUrgent)),
    );
    this.#track(started);
    return first.written;
  }

  /** The queue is paused: what is being submitted and started here was not to start. */
  pause(): void {
    for (const { coming } of this.#waiting) for (const one of coming) one.isPaused = true;
  }

  /** Something may have changed: the pulls that stand may not know. */
  lookAnew(): void {
    this.#pulls.forgetStanding();
    this.stir();
  }

  /** Looks at what is wanted and what is there, once, when this turn's claims are all known. */
  stir(): void {
    if (this.#isStirred) return;
    this.#isStirred = true;
    queueMicrotask(() => {
      this.#isStirred = false;
      void this.#serve();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#leaving?.cancel();
    this.#slow?.cancel();
    const claims = this.#waiting.slice();
    for (const claim of claims) this.#end(claim);
    for (const token of [...this.#unsure.values()].flat()) this.#giveBack(token);
    this.#unsure.clear();
    await Promise.allSettled(this.#starting);
    const held = claims.flatMap(({ coming }) => coming.flatMap((one) => one.held ?? []));
    await Promise.allSettled(held.map((one) => this.#leases.release(one)));
    for (const claim of claims) claim.resolve([]);
  }

  /** Slots that nothing on its way will fill. */
  get #lack(): number {
    return this.#waiting.reduce((lack, { open }) => lack + Math.max(0, open), 0);
  }

  /** A pull stands at every level. */
  get #areAllAsked(): boolean {
    for (let level = 0; level < this.#store.levels; level += 1) if (!this.#pulls.isStanding(level)) return false;
    return true;
  }

  /** Of the levels above this one nothing is ready: whatever becomes so comes by itself. */
  #areEmpty(level: number): boolean {
    for (let above = 0; above < level; above += 1) if (!this.#pulls.isServed(above)) return false;
    return true;
  }

  /** Whether something more urgent was there of late. To look each time would cost a third of an idle start, and most queues have one level. */
  #isUrgentAbout(level: number): boolean {
    const since = this.#clock.monotonic() - URGENT_MS;
    return this.#arrivedAt.slice(0, level).some((at) => at > since);
  }

  async #serve(): Promise<void> {
    if (this.#closed || this.#isAsking || this.#isResting || this.#lack === 0) return;
    this.#isAsking = true;
    try {
      for (let taking = this.#due.takeIn(); taking !== undefined && this.#lack > 0; taking = this.#due.takeIn())
        await taking;
      await this.#askOutOfTurn();
      for (let level = 0; level < this.#store.levels && this.#lack > 0;) level += (await this.#isAsked(level)) ? 1 : 0;
    } catch {
      this.#rest();
    } finally {
      this.#isAsking = false;
      this.#answerAll();
      // Those who came meanwhile; or a pull that stood has brought something.
      if (this.#lack > 0 && !this.#areAllAsked) this.stir();
    }
  }

  /** False: its consumer may be behind, and is to be asked again. */
  async #isAsked(level: number): Promise<boolean> {
    if (this.#pulls.isStanding(level)) return true;
    const want = this.#lack;
    const found = await this.#ask(level, want);
    if (found.newest === undefined) this.#forgotten.look(level);
    if (found.found >= want || this.#closed) return true;
    if (await this.#lag.wasBehind(level, found.newest?.sequence)) return false;
    if (this.isWanted) this.#pulls.stand(level, 1, this.#waitMs);
    return true;
  }

  async #ask(level: number, want: number): ReturnType<Pulls["quick"]> {
    // The server works off pulls and what is given back apart: what is behind it would overtake what is not back yet.
    if (this.#goingBack.size > 0) await Promise.all(this.#goingBack);
    this.#isPulling = true;
    const found = await this.#pulls.quick(level, want);
    this.#isPulling = false;
    this.#patience.saw(level, found);
    this.#answerAll();
    return found;
  }

  async #askOutOfTurn(): Promise<void> {
    const [claim] = this.#waiting;
    if (claim === undefined) return;
    const turns = this.#patience.take(this.#lack, claim.request.patienceMs, () => this.stir());
    if (turns === undefined) return;
    this.#outOfTurn = turns.level;
    try {
      await this.#ask(turns.level, turns.count);
    } finally {
      this.#outOfTurn = undefined;
    }
  }

  /** So long the most patient of those who wait will wait; infinity: that is not known. */
  get #waitMs(): number {
    if (this.#waiting.length === 0) return Number.POSITIVE_INFINITY;
    return Math.max(0, Math.max(...this.#waiting.map(({ until }) => until)) - this.#clock.monotonic());
  }

  /** Not before what is more urgent and was there first, unless that cannot be told. One look for all that come in one turn. */
  async #takeInTurn(level: number, token: Token): Promise<void> {
    const unsure = this.#unsure.get(level);
    if (unsure !== undefined) return void unsure.push(token);
    this.#unsure.set(level, [token]);
    await Promise.resolve();
    for (let sure = this.#unsure.get(level) ?? []; sure.length > 0; sure = this.#unsure.get(level) ?? []) {
      this.#unsure.set(level, []);
      await this.#lag.caughtUp(level).catch(() => undefined);
      for (const one of sure) this.#take(level, one);
    }
    this.#unsure.delete(level);
  }

  #claimFor(level: number): WaitingClaim | undefined {
    return this.#closed ? undefined : this.#waiting.find((claim) => claim.openAt(level) > 0);
  }

  #take(level: number, token: Token): void {
    const claim = this.#claimFor(level);
    if (claim === undefined) return this.#giveBack(token);
    const coming = this.#expect(claim, level, false);
    const started = this.#leases.start(token, claim.claimant).then((held): unknown => {
      const isPlain =
        held !== undefined && held.item?.id === undefined && held.behind.every(({ id }) => id === undefined);
      if (isPlain) return this.#started(claim, coming, held);
      return this.#lookAt(token, held).then((sure) => this.#started(claim, coming, sure));
    });
    this.#track(
      started.catch((error: unknown) => {
        // Or it could not be read, which says nothing about the others.
        if (!(error instanceof Damaged)) {
          this.#giveBack(token);
          this.#rest();
        }
        this.#started(claim, coming, undefined);
      }),
    );
  }

  /** Undefined: it has not begun, or what was begun is not to run. */
  async #lookAt(token: Token, held: Held | undefined): Promise<Held | undefined> {
    const store = this.#store;
    if (held === undefined) {
      const found = await store.read(token.key);
      // Still what the key is known by, but not for this try: it comes back.
      if (announcedBy(found) === token.seen.sequence) this.#giveBack(token);
      else if (token.delivery !== undefined) sendUnanswered(this.#wire, token.delivery.reply, "+ACK");
      return undefined;
    }
    const [isVoid, behind] = await Promise.all([store.isVoid(held.item), store.untilVoid(held.behind)]);
    if (!isVoid && behind.length === held.behind.length) return held;
    // Nothing is to be covered that is not handed out: whoever cancels it would be told that it may have begun.
    if (!isVoid) return (await this.#leases.narrow(held)) ? held : undefined;
    // What is not to run is dropped without a word.
    await this.#leases.drop(held);
    return undefined;
  }

  #expect(claim: WaitingClaim, level: number, isSubmitted: boolean): Coming {
    const isOutOfTurn = level === this.#outOfTurn;
    const coming: Coming = {
      level,
      isOutOfTurn,
      isSubmitted,
      since: this.#clock.monotonic(),
      held: undefined,
      isPaused: false,
    };
    claim.coming.push(coming);
    return coming;
  }

  /** It is there, or will not come. */
  #started(claim: WaitingClaim, coming: Coming, held: Held | undefined, isWanted = true): void {
    coming.held = held;
    // It took long, and others of its claim were given out; most likely its worker has asked again.
    const again = held !== undefined && claim.isOver && isWanted ? this.#claimLike(claim) : undefined;
    if (again !== undefined) {
      again.coming.push(coming);
      return this.#answer(again);
    }
    // Its slot went to something that was ready before.
    const isLate = coming.isSubmitted && (coming.isPaused || claim.open < 0);
    if (held === undefined || claim.isOver || isLate || !isWanted) {
      claim.forget(coming);
      if (held !== undefined) this.#store.background(this.#leases.release(held));
      if (!claim.isOver) this.stir();
    }
    this.#answer(claim);
  }

  #claimLike({ claimant, request }: WaitingClaim): WaitingClaim | undefined {
    if (this.#closed || request.signal.aborted) return undefined;
    const { worker, leaseMs, mostItems } = claimant;
    return this.#waiting.find(
      ({ open, claimant: other }) =>
        open > 0 && other.worker === worker && other.leaseMs === leaseMs && other.mostItems === mostItems,
    );
  }

  #track(started: Promise<unknown>): void {
    const tracked: Promise<unknown> = started.catch(() => undefined).finally(() => this.#starting.delete(tracked));
    this.#starting.add(tracked);
  }

  #answerAll(): void {
    for (const claim of this.#waiting.slice()) this.#answer(claim);
  }

  /** When all that is on its way to it is there, and nothing else is being asked for. */
  #answer(claim: WaitingClaim): void {
    const { coming } = claim;
    if (claim.isOver || this.#closed || coming.length === 0) return;
    const isMoreAsked = this.#isPulling && claim.open > 0;
    if (isMoreAsked || coming.some(({ held }) => held === undefined)) return this.#answerSoon();
    this.#give(claim);
  }

  #give(claim: WaitingClaim): void {
    const grants = claim.coming.flatMap(({ held, isOutOfTurn, level }) => {
      if (held === undefined || held.over || held.session.dead) return [];
      if (!isOutOfTurn) this.#patience.count();
      held.turnSince = this.#clock.monotonic();
      return [{ level: isOutOfTurn ? -1 : level, grant: this.#leases.grant(held) }];
    });
    if (grants.length === 0) {
      claim.coming = claim.coming.filter(({ held }) => held === undefined);
      return this.stir();
    }
    this.#end(claim);
    claim.resolve(grants.toSorted((a, b) => a.level - b.level).map(({ grant }) => grant));
    if (this.#waiting.length > 0) this.stir();
  }

  /** What is there is not kept waiting for what takes long: the time of its lease runs. */
  #answerSoon(): void {
    this.#slow ??= this.#clock.setTimer(SLOW_MS, () => {
      this.#slow = undefined;
      const since = this.#clock.monotonic() - SLOW_MS;
      for (const claim of this.#waiting.slice()) {
        const first = claim.coming.find(({ held }) => held !== undefined);
        if (first === undefined) continue;
        if (first.since <= since) this.#give(claim);
        else this.#answerSoon();
      }
    });
  }

  #end(claim: WaitingClaim): void {
    claim.isOver = true;
    claim.onEnd();
    this.#waiting.splice(this.#waiting.indexOf(claim), 1);
    this.#leftAt = this.#clock.monotonic();
    if (this.#closed) return;
    this.#leaving?.cancel();
    this.#leaving = this.#clock.setTimer(QUICK_MS, () => this.withdraw());
  }

  #releaseAll({ coming }: WaitingClaim): void {
    for (const { held } of coming) if (held !== undefined) this.#store.background(this.#leases.release(held));
  }

  #giveBack({ delivery }: Token): void {
    if (delivery === undefined) return;
    if (this.#closed) return sendUnanswered(this.#wire, delivery.reply, "-NAK");
    const back: Promise<unknown> = this.#store.js
      .confirm(delivery.reply, "-NAK")
      .catch(() => undefined)
      .finally(() => this.#goingBack.delete(back));
    this.#goingBack.add(back);
  }

  #rest(): void {
    if (this.#isResting || this.#closed) return;
    this.#isResting = true;
    this.#clock.setTimer(REST_MS, () => {
      this.#isResting = false;
      this.stir();
    });
  }
}
