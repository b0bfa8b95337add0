/**
 * Hands out ready keys. While there are free slots the consumers are asked level by level, most urgent first. A level that
 * has nothing gets a pull that stands at the server: until it brings something, nobody has to ask there again. What comes is
 * started at once, or goes back. Only for a worker that comes back for more within milliseconds, the next keys are fetched
 * and started while it is at work, and given back when it does not come.
 */
import type { Clock, Timer } from "../../domain/clock.ts";
import { PassingSet } from "../../domain/passing.ts";
import type { ClaimRequest, Grant } from "../../engine/port.ts";
import { decodeState } from "./codec.ts";
import { QUICK_MS } from "./ahead.ts";
import { type Coming, Desk, RESERVED_MS, SLOW_MS, type WaitingClaim } from "./desk.ts";
import { announcedBy, type KeyStore } from "./key-store.ts";
import { Lag } from "./lag.ts";
import type { Held } from "./own-leases.ts";
import type { Leases, Token } from "./leases.ts";
import type { Pulled, Pulls } from "./pulls.ts";
import { lastToken } from "./subjects.ts";
import { Turns } from "./turns.ts";
import type { Wire } from "./wire.ts";

/** Asks of one level at a time: with more, each would bring less. */
const MOST_ASKING = 2;
/** More would only wait longer. */
const MOST_FETCHED = 256;
/** After something failed: the server is away, choosing a leader, or full. */
const REST_MS = 100;

interface Arrived {
  readonly level: number;
  /** Its level has waited too long: it goes first. */
  readonly isFirst: boolean;
  readonly token: Token;
}

interface Fetched extends Arrived {
  readonly since: number;
}

export class Claims {
  readonly #store: KeyStore;
  readonly #leases: Leases;
  readonly #pulls: Pulls;
  readonly #wire: Wire;
  readonly #clock: Clock;
  readonly #takeIn: () => Promise<unknown> | undefined;
  readonly #turns = new Turns();
  readonly #desks = new Map<string, Desk>();
  /** Most processes have one worker. */
  #lastDesk: Desk | undefined;
  /** Per level: when what is first there was made, as far as this process knows. */
  readonly #seenAt: number[];
  /** Per level: messages that were asked for and have not come yet. */
  readonly #asked: number[];
  /** Levels that are being asked out of turn. */
  readonly #impatient = new Set<number>();
  /** Per level: how often it is being asked, or looked at. */
  readonly #asking: number[];
  readonly #starts = new PassingSet<Promise<void>>();
  /** Keys that were not started here, until the server has them again. */
  readonly #goingBack = new Set<Promise<void>>();
  /** Of a cluster, where what is more urgent may come later. */
  readonly #lag: Lag;
  /** Per level: keys that have come, while it is looked whether something more urgent should come first. */
  readonly #unsure: Token[][];
  /** Fetched ahead, not started. */
  #fetched: Fetched[] = [];
  /** Of the last answer to anybody. */
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** The last claim came right after an answer. */
  #isQuick = false;
  /** Somebody's items may begin once only: nothing is started here before it is asked for, or begun before it is written. */
  #isOnce = false;
  #stirred = false;
  #takingIn = false;
  #resting = false;
  #timer: Timer | undefined;
  #timerAt = 0;
  #closed = false;

  /** @param takeIn takes in what has come due, before anything is handed out; undefined: there is nothing */
  constructor(store: KeyStore, leases: Leases, pulls: Pulls, wire: Wire, takeIn: () => Promise<unknown> | undefined) {
    this.#store = store;
    this.#leases = leases;
    this.#pulls = pulls;
    this.#wire = wire;
    this.#takeIn = takeIn;
    this.#clock = store.clock;
    this.#seenAt = Array.from({ length: store.levels }, () => this.#clock.wall());
    this.#asked = this.#seenAt.map(() => 0);
    this.#asking = this.#seenAt.map(() => 0);
    this.#unsure = this.#seenAt.map(() => []);
    this.#lag = new Lag(store);
  }

  /** Whether the next item of a key of this level that is settled now finds a claim here that waits for it, and nothing goes before it. */
  goesOn(level: number): boolean {
    if (this.#closed || this.#openDesk(false) === undefined) return false;
    for (const fetched of this.#fetched) if (fetched.isFirst || fetched.level < level) return false;
    for (const desk of this.#desks.values()) if (desk.hasEarlier(level)) return false;
    return true;
  }

  /** Whether the next item of a key may begin before that is written. */
  get mayRunAhead(): boolean {
    return !this.#isOnce;
  }

  claim(request: ClaimRequest): Promise<readonly Grant[]> {
    if (request.signal.aborted || this.#closed) return Promise.resolve([]);
    if (request.once === true) this.#isOnce = true;
    return new Promise((resolve) => {
      const desk = this.#deskOf(request.worker, request.leaseMs);
      const giveUp = (): void => claim.answer([]);
      const claim: WaitingClaim = {
        request,
        answer: (grants) => {
          request.signal.removeEventListener("abort", giveUp);
          desk.claims.splice(desk.claims.indexOf(claim), 1);
          // Will it come back?
          this.#plan(QUICK_MS);
          resolve(grants);
        },
      };
      request.signal.addEventListener("abort", giveUp);
      const now = this.#clock.monotonic();
      this.#isQuick = now - this.#answeredAt < QUICK_MS;
      desk.ask(claim, now);
      this.stir();
    });
  }

  /** A pull brought something. */
  arrive(level: number, pulled: Pulled): void {
    if ((this.#asked[level] ?? 0) > 0) this.#asked[level] = (this.#asked[level] ?? 0) - 1;
    const token = readToken(pulled);
    if (token === undefined) {
      // A message that Baton did not write must not keep its level from being handed out.
      this.#wire.publish(pulled.reply, "+TERM");
      this.stir();
      return;
    }
    this.#receive(level, token);
  }

  /**
   * A key that this process has just taken from somebody who is gone. If nothing is ahead of it, it is started here: its consumer might
   * hand it to the very process that stands still, and to nobody else for a second. In a cluster it is looked anyway whether anything is.
   */
  offer(token: Token): void {
    const level = token.seen.state.items[0]?.level ?? 0;
    if (!this.#lag.isPossible)
      for (let ahead = 0; ahead <= level; ahead += 1) if (!this.#pulls.isStanding(ahead)) return;
    if (this.#lackingDesk() !== undefined) this.#receive(level, token);
  }

  #receive(level: number, token: Token): void {
    if (level > 0 && this.#lag.isPossible && !this.#impatient.has(level)) void this.#takeInTurn(level, token);
    else this.#take(level, token);
  }

  /** Not before what is more urgent and was there first, unless that cannot be told. */
  async #takeInTurn(level: number, token: Token): Promise<void> {
    const unsure = this.#unsure[level];
    if (unsure === undefined || unsure.push(token) > 1) return;
    while (unsure.length > 0) {
      // One look for all that come in one turn.
      await Promise.resolve();
      const { length } = unsure;
      await this.#lag.caughtUp(level).catch(() => undefined);
      for (const sure of unsure.splice(0, length)) this.#take(level, sure);
    }
    this.stir();
  }

  #take(level: number, token: Token): void {
    const isFirst = this.#impatient.has(level);
    const early = this.#closed || isFirst ? undefined : this.#earlyDesk(token);
    const desk = this.#closed || early !== undefined ? undefined : this.#openDesk(isFirst);
    if (early !== undefined) this.#begin(early, { level, token, isFirst }, true);
    else if (desk !== undefined) this.#begin(desk, { level, token, isFirst });
    else if (!this.#closed && (isFirst || this.#mayKeep())) this.#keep(level, token, isFirst);
    else this.#giveBack(token);
  }

  /** Whose worker will want it in a moment. One that was tried before is not started for nothing: it must not be blamed for a crash. */
  #earlyDesk({ seen }: Token): Desk | undefined {
    if (this.#isOnce || (seen.state.items[0]?.attempts ?? 0) > 0) return undefined;
    for (const desk of this.#desks.values()) if (desk.ahead.depth > 0 && desk.lackAhead > 0) return desk;
    return undefined;
  }

  /** It was wanted when it was asked for. A worker that comes back for more at once, and is between two claims, will want it in a moment. */
  #mayKeep(): boolean {
    const wasJustAnswered = this.#clock.monotonic() - this.#answeredAt < QUICK_MS;
    return this.#isQuick && wasJustAnswered && this.#fetched.length < MOST_FETCHED;
  }

  /** The next item of a key that was just settled, under a lease that was made with it. */
  reserve(held: Held): void {
    const since = this.#clock.monotonic();
    this.#deskOf(held.worker, held.session.leaseMs).add({
      level: held.item?.level ?? 0,
      since,
      isFetched: false,
      isFirst: false,
      held,
      isUnwanted: false,
    });
    this.#plan(RESERVED_MS);
    this.stir();
  }

  /** What was fetched or started for claims that have yet to come goes back. */
  giveBack(): void {
    for (const { token } of this.#fetched.splice(0)) this.#giveBack(token);
    for (const desk of this.#desks.values()) for (const coming of desk.takeEarly()) this.#release(coming);
  }

  #release(coming: Coming): void {
    coming.isUnwanted = true;
    if (coming.held !== undefined) this.#store.background(this.#leases.release(coming.held));
  }

  /** Something may have changed: the pulls that stand may not know. */
  lookAnew(): void {
    this.#pulls.forgetStanding();
    this.stir();
  }

  /** Looks at what is wanted and what is there, once, when this turn's claims and settlements are all known. */
  stir(): void {
    if (this.#stirred) return;
    this.#stirred = true;
    queueMicrotask(() => {
      this.#stirred = false;
      this.#serve();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    for (const { claims } of this.#desks.values()) for (const claim of claims.slice()) claim.answer([]);
    for (const { token } of this.#fetched.splice(0)) this.#giveBack(token);
    for (const unsure of this.#unsure) for (const token of unsure.splice(0)) this.#giveBack(token);
    await Promise.allSettled(this.#starts);
    const left = Array.from(this.#desks.values()).flatMap((desk) => desk.takeAll());
    const releases = left.flatMap(({ held }) => (held === undefined ? [] : [this.#leases.release(held)]));
    await Promise.allSettled(releases);
  }

  #deskOf(worker: string, leaseMs: number): Desk {
    let desk = this.#lastDesk;
    if (desk?.worker === worker && desk.leaseMs === leaseMs) return desk;
    const name = `${leaseMs} ${worker}`;
    desk = this.#desks.get(name);
    if (desk === undefined) {
      desk = new Desk(worker, leaseMs, (coming, held) => this.#grant(coming, held));
      this.#desks.set(name, desk);
    }
    this.#lastDesk = desk;
    return desk;
  }

  #grant({ isFirst }: Coming, held: Held): Grant {
    if (!isFirst) this.#turns.count();
    return this.#leases.grant(held);
  }

  /** A slot that was promised to a level that has waited too long is not for anybody else. */
  #openDesk(isFirst: boolean): Desk | undefined {
    if (!isFirst && this.#impatient.size > 0) {
      let open = -this.#promised();
      for (const desk of this.#desks.values()) open += desk.open;
      if (open <= 0) return undefined;
    }
    return this.#lackingDesk();
  }

  #lackingDesk(): Desk | undefined {
    for (const desk of this.#desks.values()) if (desk.open > 0) return desk;
    return undefined;
  }

  /** Slots of levels that have waited too long. */
  #promised(): number {
    let promised = 0;
    for (const level of this.#impatient) promised += this.#asked[level] ?? 0;
    return promised;
  }

  /** Slots that nothing on its way was asked for to fill; and, if told so, those that will come free in a moment, less what is early. */
  #lack(withAhead: boolean): number {
    let lack = 0;
    for (const desk of this.#desks.values()) lack += withAhead ? desk.lackAhead : desk.open;
    for (const asked of this.#asked) lack -= asked;
    for (const { length } of this.#unsure) lack -= length;
    return lack;
  }

  #begin(desk: Desk, { level, token, isFirst }: Arrived, isEarly = false): void {
    const since = this.#clock.monotonic();
    const coming: Coming = { level, since, isFetched: true, isFirst, held: undefined, isUnwanted: false };
    desk.add(coming, isEarly);
    this.#plan(SLOW_MS);
    const start: Promise<void> = this.#start(token, desk).then((held) => {
      coming.since = this.#clock.monotonic();
      coming.held = held;
      if (held === undefined) desk.forget(coming);
      else if (coming.isUnwanted) this.#release(coming);
      this.#plan(RESERVED_MS);
      this.#starts.delete(start);
      this.stir();
    });
    this.#starts.add(start);
  }

  #keep(level: number, token: Token, isFirst: boolean): void {
    this.#fetched.push({ level, isFirst, token, since: this.#clock.monotonic() });
    this.#plan(QUICK_MS);
  }

  #startFetched(): void {
    if (this.#fetched.length === 0) return;
    this.#fetched.sort((a, b) => Number(b.isFirst) - Number(a.isFirst) || a.level - b.level);
    let from = 0;
    for (; from < this.#fetched.length; from += 1) {
      const fetched = this.#fetched[from];
      const desk = fetched === undefined ? undefined : this.#openDesk(fetched.isFirst);
      if (desk === undefined || fetched === undefined) break;
      this.#begin(desk, fetched);
    }
    this.#fetched.splice(0, from);
  }

  #serve(): void {
    if (this.#closed || this.#desks.size === 0 || this.#takingIn) return;
    const takingIn = this.#takeIn();
    if (takingIn !== undefined) {
      this.#takingIn = true;
      void takingIn
        .catch(() => this.#rest())
        .then(() => {
          this.#takingIn = false;
          this.stir();
        });
      return;
    }
    if (!this.#resting) this.#askImpatient();
    this.#startFetched();
    for (const desk of this.#desks.values()) desk.gatherFirst();
    for (let level = 0; level < this.#store.levels; level += 1) {
      const isWhole = this.#gather(level);
      const asking = this.#asking[level] ?? 0;
      // More of it may come in a moment.
      if (asking >= this.#mostAsking(level) || (this.#unsure[level] ?? []).length > 0) break;
      const want = this.#pulls.isStanding(level) || this.#resting ? 0 : this.#wantAt(level);
      if (want > 0) void this.#ask(level, want);
      if (want > 0 || asking > 0 || !isWhole) break;
    }
    for (const desk of this.#desks.values()) {
      if (desk.giving.length === 0) continue;
      this.#answeredAt = this.#clock.monotonic();
      desk.answeredAt = this.#answeredAt;
      desk.claims[0]?.answer(desk.giving.splice(0));
      // The next claim is answered in a turn of its own.
      if (desk.claims.length > 0 && desk.coming > 0) this.stir();
    }
  }

  /** What settlements on their way will fill is left to them; but always one for what is more urgent than that. */
  #wantAt(level: number): number {
    const { count, level: next } = this.#leases.goingOn;
    const lack = this.#lack(true) - this.#fetched.length;
    return Math.max(lack - count, count > 0 && lack > 0 && level < next ? 1 : 0);
  }

  /** What of one level can be given out. False: something of it comes in a moment, and what is less urgent has to wait. */
  #gather(level: number): boolean {
    const now = this.#clock.monotonic();
    const promised = this.#promised();
    let isWhole = true;
    for (const desk of this.#desks.values()) if (!desk.gather(level, promised, now)) isWhole = false;
    return isWhole;
  }

  /** For a worker that is quick a second ask goes out before the first is answered: otherwise the server would stand still in between. */
  #mostAsking(level: number): number {
    if (this.#impatient.has(level)) return 1;
    for (const desk of this.#desks.values()) if (desk.ahead.depth > 0) return MOST_ASKING;
    return 1;
  }

  async #ask(level: number, want: number): Promise<void> {
    const count = (counts: number[], more: number): number =>
      (counts[level] = Math.max(0, (counts[level] ?? 0) + more));
    let missing = want;
    count(this.#asking, 1);
    count(this.#asked, want);
    try {
      // The server works off pulls and what is given back apart: what is behind it would overtake what is not back yet.
      if (this.#goingBack.size > 0) await Promise.all(this.#goingBack);
      const { found, newest } = await this.#pulls.quick(level, want);
      this.#seenAt[level] = newest === undefined || newest.left === 0 ? this.#clock.wall() : newest.at;
      count(this.#asked, found - want);
      missing = 0;
      if (found >= want || (await this.#lag.wasBehind(level, newest?.sequence))) return;
      // What comes for another ask would be taken for what comes for this one.
      if ((this.#asking[level] ?? 0) === 1) this.#pulls.stand(level, 1);
    } catch {
      this.#rest();
    } finally {
      count(this.#asked, -missing);
      if (count(this.#asking, -1) === 0) this.#asked[level] = 0;
      this.#impatient.delete(level);
      this.stir();
    }
  }

  /** Some grants go out of turn to the level that has waited longest, if that is longer than its patience. */
  #askImpatient(): void {
    const lack = this.#lack(false) - this.#leases.goingOn.count;
    if (lack <= 0) return;
    const [patienceMs] = Array.from(this.#desks.values()).flatMap(({ claims }) =>
      claims.map(({ request }) => request.patienceMs),
    );
    if (patienceMs === undefined) return;
    const now = this.#clock.wall();
    const waited = this.#seenAt.map((at, level) => (this.#pulls.isStanding(level) ? 0 : now - at));
    const longest = Math.max(...waited.slice(1));
    if (longest <= patienceMs) {
      this.#turns.forget();
      return;
    }
    const level = waited.lastIndexOf(longest);
    const turns = (this.#asking[level] ?? 0) > 0 ? 0 : this.#turns.take(lack);
    if (turns === 0) return;
    this.#impatient.add(level);
    void this.#ask(level, turns);
  }

  /** Undefined: there is nothing to be given out. */
  async #start(token: Token, { worker, leaseMs }: Desk): Promise<Held | undefined> {
    try {
      const held = await this.#leases.start(token, worker, leaseMs);
      if (held === undefined) {
        const found = await this.#store.read(token.key);
        // Still what the key is known by, but not for this try: it comes back.
        if (announcedBy(found) === token.seen.sequence) this.#giveBack(token);
        else if (token.delivery !== undefined) this.#wire.publish(token.delivery.reply, "+ACK");
        return undefined;
      }
      if (held.item?.id === undefined || !(await this.#store.isVoid(held.item))) return held;
      // What is not to run is dropped without a word.
      await this.#leases.drop(held);
    } catch {
      // It is delivered again, to whoever asks then.
      this.#rest();
    }
    return undefined;
  }

  #rest(): void {
    if (this.#resting || this.#closed) return;
    this.#resting = true;
    this.#clock.setTimer(REST_MS, () => {
      this.#resting = false;
      this.stir();
    });
  }

  #plan(delayMs: number): void {
    if (this.#closed) return;
    const at = this.#clock.monotonic() + delayMs;
    if (this.#timer !== undefined && this.#timerAt <= at) return;
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = this.#clock.setTimer(delayMs, () => this.#letGo());
  }

  /** What nobody came for goes back, and its desk is no more; what is slow is waited for no more. */
  #letGo(): void {
    this.#timer = undefined;
    if (this.#closed) return;
    const now = this.#clock.monotonic();
    for (const { token } of this.#fetched.filter(({ since }) => now - since >= QUICK_MS)) this.#giveBack(token);
    this.#fetched = this.#fetched.filter(({ since }) => now - since < QUICK_MS);
    let next = Math.min(...this.#fetched.map(({ since }) => since + QUICK_MS));
    for (const [name, desk] of this.#desks) {
      const goneAt = desk.claims.length > 0 ? Number.POSITIVE_INFINITY : desk.answeredAt + QUICK_MS;
      if (now >= goneAt) desk.ahead.end();
      for (const coming of desk.takeUnwanted(now)) this.#release(coming);
      next = Math.min(next, desk.nextLook(now), now >= goneAt ? Number.POSITIVE_INFINITY : goneAt);
      if (now < goneAt || desk.coming > 0) continue;
      this.#desks.delete(name);
      this.#lastDesk = undefined;
    }
    if (next !== Number.POSITIVE_INFINITY) this.#plan(next - now + 1);
    this.stir();
  }

  #giveBack({ delivery }: Token): void {
    if (delivery === undefined) return;
    if (this.#closed) {
      this.#wire.publish(delivery.reply, "-NAK");
      return;
    }
    const back: Promise<void> = this.#store.js
      .confirm(delivery.reply, "-NAK")
      .catch(() => undefined)
      .finally(() => this.#goingBack.delete(back));
    this.#goingBack.add(back);
  }
}

function readToken({ consumer, data, reply, sequence, subject }: Pulled): Token | undefined {
  try {
    const seen = { sequence, state: decodeState(data, sequence) };
    return { key: lastToken(subject), seen, delivery: { consumer, reply } };
  } catch {
    return undefined;
  }
}
