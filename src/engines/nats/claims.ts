/**
 * Hands out ready keys. While there are free slots the consumers are asked level by level, most urgent first. A level that
 * has nothing gets a pull that stands at the server: until it brings something, nobody has to ask there again. What comes is
 * started at once, or goes back. Only for a worker that comes back for more within milliseconds, the next keys are fetched
 * and started while it is at work, and given back when it does not come.
 */
import type { Clock, Timer } from "../../domain/clock.ts";
import type { ClaimRequest, Grant } from "../../engine/port.ts";
import { QUICK_MS } from "./ahead.ts";
import { Asking } from "./asking.ts";
import { type Coming, type Desk, RESERVED_MS, SLOW_MS, type WaitingClaim } from "./desk.ts";
import { type Arrived, DeskStarts } from "./desk-starts.ts";
import { Desks } from "./desks.ts";
import { Forgotten } from "./forgotten.ts";
import { GoingBack } from "./going-back.ts";
import { InTurn } from "./in-turn.ts";
import type { KeyStore } from "./key-store.ts";
import { Lag } from "./lag.ts";
import type { Leases } from "./leases.ts";
import type { Held } from "./own-leases.ts";
import type { Pulled, Pulls } from "./pulls.ts";
import type { KeyItem, Seen } from "./state.ts";
import { readToken, type Token } from "./token.ts";
import { Turns } from "./turns.ts";
import { sendUnanswered } from "./unanswered.ts";
import type { Wire } from "./wire.ts";

/** Asks of one level at a time: with more, each would bring less. */
const MOST_ASKING = 2;
/** More would only wait longer. */
const MOST_FETCHED = 256;
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

interface Fetched extends Arrived {
  readonly since: number;
}

export class Claims {
  readonly #levels: number;
  readonly #leases: Leases;
  readonly #pulls: Pulls;
  readonly #wire: Wire;
  readonly #clock: Clock;
  readonly #due: Due;
  readonly #turns = new Turns();
  readonly #desks: Desks;
  readonly #asking: Asking;
  readonly #starts: DeskStarts;
  readonly #goingBack: GoingBack;
  /** Of a cluster, where what is more urgent may come later. */
  readonly #lag: Lag;
  readonly #inTurn: InTurn;
  /** Fetched ahead, not started. */
  #fetched: Fetched[] = [];
  /** Of the last answer to anybody. */
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** The last claim came right after an answer. */
  #isQuick = false;
  /** When a claim was last there or answered, by the monotonic clock. */
  #leftAt = Number.NEGATIVE_INFINITY;
  /** Per level: when a pull last brought something. */
  readonly #arrivedAt: number[] = [];
  /** Workers whose last claim said so: nothing is started here before it is asked for, or begun before it is written. */
  readonly #once = new Set<string>();
  #stirred = false;
  #takingIn = false;
  #resting = false;
  #timer: Timer | undefined;
  #timerAt = 0;
  #closed = false;

  /** @param briefAfter so many keys in a row, each at once, make a worker's leases brief */
  constructor(store: KeyStore, leases: Leases, pulls: Pulls, wire: Wire, briefAfter: number, due: Due) {
    this.#levels = store.levels;
    this.#leases = leases;
    this.#pulls = pulls;
    this.#wire = wire;
    this.#due = due;
    this.#clock = store.clock;
    const rest = (): void => this.#rest();
    const stir = (): void => this.stir();
    const lag = new Lag(store);
    const goingBack = new GoingBack(store, wire);
    const begun = (desk: Desk, coming: Coming): void => this.#giveSoon(desk, coming);
    this.#lag = lag;
    this.#goingBack = goingBack;
    this.#desks = new Desks(this.#clock, (coming, held) => this.#grant(coming, held));
    const stand = (level: number): void => this.#stand(level);
    const forgotten = new Forgotten(store, () => this.#closed);
    this.#asking = new Asking({ store, pulls, stand, lag, turns: this.#turns, goingBack, forgotten, rest, stir });
    this.#starts = new DeskStarts({ store, leases, wire, goingBack, briefAfter, rest, begun });
    this.#inTurn = new InTurn(store.levels, lag, (level, token) => this.#take(level, token), stir);
  }

  /**
   * Whether the next item of a key of this level that is settled now finds a claim here that waits for it, and nothing goes before it.
   *
   * @param hasSlot it did when its settlement began: nobody else was given that slot since, though its claim may have been answered with
   * other keys. A quick worker is back in a moment.
   */
  goesOn(level: number, hasSlot: boolean): boolean {
    if (this.#closed) return false;
    const open = hasSlot ? this.#desks.lacking(level) : this.#openDesk(false, level);
    if (open === undefined && !(hasSlot && this.#wasJustAnswered())) return false;
    for (const fetched of this.#fetched) if (fetched.isFirst || fetched.level < level) return false;
    return !this.#desks.hasEarlier(level);
  }

  /** Whether the next item of a key may begin before that is written. */
  get mayRunAhead(): boolean {
    return !this.#isOnce;
  }

  get #isOnce(): boolean {
    return this.#once.size > 0;
  }

  claim(request: ClaimRequest): Promise<readonly Grant[]> {
    if (request.signal.aborted || this.#closed) return Promise.resolve([]);
    if (request.once === true) this.#once.add(request.worker);
    else this.#once.delete(request.worker);
    return new Promise((resolve, reject) => {
      const now = this.#clock.monotonic();
      const { worker, leaseMs, items: mostItems = 1 } = request;
      const desk = this.#desks.of({ worker, leaseMs, mostItems });
      const giveUp = (): void => {
        leave();
        resolve([]);
        this.#left(false);
      };
      const leave = (): void => {
        request.signal.removeEventListener("abort", giveUp);
        desk.claims.splice(desk.claims.indexOf(claim), 1);
      };
      const claim: WaitingClaim = {
        request,
        until: request.waitMs === undefined ? Number.POSITIVE_INFINITY : now + request.waitMs,
        answer: (grants) => {
          leave();
          resolve(grants);
          this.#left(this.#isQuick);
        },
        refuse: (error) => {
          leave();
          reject(error);
          this.#left(false);
        },
      };
      request.signal.addEventListener("abort", giveUp);
      this.#isQuick = now - this.#answeredAt < QUICK_MS;
      desk.ask(claim, now);
      this.stir();
    });
  }

  /**
   * A claim has ended. What nobody waits for any more must not wait at the server: it would be sent here, and be late for those who do.
   * One who is quick is back in a moment, and his pulls may stand so long; one who has given up, or takes his time, is not.
   */
  #left(comesBack: boolean): void {
    this.#leftAt = this.#clock.monotonic();
    this.#plan(QUICK_MS);
    if (!comesBack && !this.#desks.isAsked) this.#leaveServer();
  }

  /** The last lease of this process has ended. */
  withdraw(): void {
    if (!this.isWanted) this.#leaveServer();
  }

  #leaveServer(): void {
    if (this.#closed) return;
    this.#pulls.withdraw();
    this.#due.withdraw();
  }

  /** Somebody waits for keys, or will in a moment: a pull may stand at the server for him. */
  get isWanted(): boolean {
    if (this.#closed) return false;
    return this.#desks.isAsked || (this.#isQuick && this.#clock.monotonic() - this.#leftAt < QUICK_MS);
  }

  #stand(level: number): void {
    if (this.isWanted) this.#pulls.stand(level, 1, this.#desks.waitMs);
  }

  /** Nothing can be handed out, and whoever waits should know why. */
  refuse(error: Error): void {
    for (const { claims } of this.#desks.all()) for (const claim of claims.slice()) claim.refuse(error);
  }

  /** A pull brought something. */
  arrive(level: number, pulled: Pulled): void {
    this.#asking.arrived(level);
    this.#arrivedAt[level] = this.#clock.monotonic();
    const token = readToken(pulled);
    if (token === undefined) {
      // A message that Baton did not write must not keep its level from being handed out.
      sendUnanswered(this.#wire, pulled.reply, "+TERM");
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
    if (this.#desks.lacking(level) !== undefined) this.#receive(level, token);
  }

  /**
   * An item for an idle key, while a claim waits here and nothing else is ready: it is submitted and started by one write. If a pull brings
   * something more urgent before that is heard of, that goes first, and the key goes back with no attempt counted. Undefined: the
   * item has to come by its consumer. So it is in a cluster, where it would have to be looked whether something more urgent is ready.
   */
  startHere(key: string, item: KeyItem): Promise<Seen | undefined> | undefined {
    const desk = this.#idleDesk();
    return desk === undefined ? undefined : this.#starts.beginFirst(desk, key, item, this.#isUrgentAbout(item.level));
  }

  /** Whether something more urgent was there of late. To look each time would cost a third of an idle start, and most queues have one level. */
  #isUrgentAbout(level: number): boolean {
    const since = this.#clock.monotonic() - URGENT_MS;
    for (let above = 0; above < level; above += 1) if ((this.#arrivedAt[above] ?? -Infinity) > since) return true;
    return false;
  }

  /** One with a slot for which nothing is ready, at any level. */
  #idleDesk(): Desk | undefined {
    if (this.#closed || this.#isOnce || this.#resting || this.#takingIn || this.#lag.isPossible) return undefined;
    if (this.#fetched.length > 0 || this.#goingBack.size > 0 || this.#leases.goingOnCount > 0) return undefined;
    for (let level = 0; level < this.#levels; level += 1) if (!this.#pulls.isServed(level)) return undefined;
    return this.#desks.waiting();
  }

  #receive(level: number, token: Token): void {
    if (level > 0 && this.#lag.isPossible && !this.#asking.isOutOfTurn(level)) void this.#inTurn.add(level, token);
    else this.#take(level, token);
  }

  #take(level: number, token: Token): void {
    const isFirst = this.#asking.isOutOfTurn(level);
    const early = this.#closed || isFirst ? undefined : this.#earlyDesk(token);
    const desk = this.#closed || early !== undefined ? undefined : this.#openDesk(isFirst, level);
    if (early !== undefined) this.#begin(early, { level, token, isFirst }, true);
    else if (desk !== undefined) this.#begin(desk, { level, token, isFirst });
    else if (!this.#closed && (isFirst || this.#mayKeep())) this.#keep(level, token, isFirst);
    else this.#goingBack.add(token);
  }

  /** Whose worker will want it in a moment. One that was tried before is not started for nothing: it must not be blamed for a crash. */
  #earlyDesk({ seen }: Token): Desk | undefined {
    if (this.#isOnce || (seen.state.items[0]?.attempts ?? 0) > 0) return undefined;
    return this.#desks.lackingAhead();
  }

  /** It was wanted when it was asked for. A worker that comes back for more at once, and is between two claims, will want it in a moment. */
  #mayKeep(): boolean {
    return this.#isQuick && this.#wasJustAnswered() && this.#fetched.length < MOST_FETCHED;
  }

  #wasJustAnswered(): boolean {
    return this.#clock.monotonic() - this.#answeredAt < QUICK_MS;
  }

  /** The next item of a key that was just settled, under a lease that was made with it. */
  reserve(held: Held): void {
    const since = this.#clock.monotonic();
    const { worker, session, mostItems } = held;
    this.#desks.of({ worker, leaseMs: session.leaseMs, mostItems }).add({
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
    for (const { token } of this.#fetched.splice(0)) this.#goingBack.add(token);
    for (const desk of this.#desks.all()) {
      for (const coming of desk.promised) coming.isUnwanted = true;
      for (const coming of desk.takeEarly()) this.#starts.release(coming);
    }
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
    this.#goingBack.close();
    this.#timer?.cancel();
    for (const { claims } of this.#desks.all()) for (const claim of claims.slice()) claim.answer([]);
    for (const { token } of this.#fetched.splice(0)) this.#goingBack.add(token);
    for (const token of this.#inTurn.takeAll()) this.#goingBack.add(token);
    await this.#starts.close();
    const left = Array.from(this.#desks.all()).flatMap((desk) => desk.takeAll());
    const releases = left.flatMap(({ held }) => (held === undefined ? [] : [this.#leases.release(held)]));
    await Promise.allSettled(releases);
  }

  #grant({ isFirst }: Coming, held: Held): Grant {
    if (!isFirst) this.#turns.count();
    return this.#leases.grant(held);
  }

  /** A slot that was promised to a level that has waited too long, or to a key that goes on, is not for anybody else. */
  #openDesk(isFirst: boolean, level = 0): Desk | undefined {
    const promised = isFirst ? 0 : this.#promised();
    if (promised > 0 && this.#desks.open <= promised) return undefined;
    return this.#desks.lacking(level);
  }

  /** Slots of levels that have waited too long, and of keys that go on as soon as that is written. */
  #promised(): number {
    return this.#leases.goingOnCount + this.#asking.askedOutOfTurn;
  }

  /** Slots that nothing on its way was asked for to fill; and, if told so, those that will come free in a moment, less what is early. */
  #lack(withAhead: boolean): number {
    const lack = withAhead ? this.#desks.lackAhead : this.#desks.open;
    return lack - this.#asking.asked - this.#inTurn.count;
  }

  #begin(desk: Desk, arrived: Arrived, isEarly = false): void {
    this.#plan(SLOW_MS);
    this.#starts.begin(desk, arrived, isEarly);
  }

  #giveSoon(desk: Desk, coming: Coming): void {
    if (this.#giveAtOnce(desk, coming)) return;
    this.#plan(RESERVED_MS);
    this.stir();
  }

  /** The only one that is on its way to a claim that waits, while nothing more urgent is asked for: there is nothing to choose. */
  #giveAtOnce(desk: Desk, { level, held, isUnwanted }: Coming): boolean {
    if (this.#closed || held === undefined || isUnwanted || desk.claims.length === 0) return false;
    if (desk.coming !== 1 || this.#asking.isAnyOutOfTurn) return false;
    for (let above = 0; above <= level; above += 1)
      if (this.#asking.countAt(above) > 0 || this.#inTurn.hasAny(above)) return false;
    desk.gather(level, 0, this.#clock.monotonic());
    this.#answer(desk);
    // Its handler begins first.
    process.nextTick(() => this.stir());
    return true;
  }

  #answer(desk: Desk): void {
    if (desk.giving.length === 0) return;
    this.#answeredAt = this.#clock.monotonic();
    desk.answer(this.#answeredAt);
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
      const desk = fetched === undefined ? undefined : this.#openDesk(fetched.isFirst, fetched.level);
      if (desk === undefined || fetched === undefined) break;
      this.#begin(desk, fetched);
    }
    this.#fetched.splice(0, from);
  }

  #serve(): void {
    if (this.#closed || this.#desks.size === 0 || this.#takingIn) return;
    const takingIn = this.#due.takeIn();
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
    if (!this.#resting) this.#askOutOfTurn();
    this.#startFetched();
    for (const desk of this.#desks.all()) desk.gatherFirst();
    for (let level = 0; level < this.#levels; level += 1) {
      const isWhole = this.#desks.gather(level, this.#promised(), this.#clock.monotonic());
      const asking = this.#asking.countAt(level);
      // More of it may come in a moment.
      if (asking >= this.#mostAsking(level) || this.#inTurn.hasAny(level)) break;
      const want = this.#pulls.isStanding(level) || this.#resting ? 0 : this.#wantAt(level);
      if (want > 0) void this.#asking.ask(level, want, this.#desks.isGiving);
      if (want > 0 || asking > 0 || !isWhole) break;
    }
    for (const desk of this.#desks.all()) {
      if (desk.giving.length === 0) continue;
      this.#answer(desk);
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

  /** For a worker that is quick a second ask goes out before the first is answered: otherwise the server would stand still in between. */
  #mostAsking(level: number): number {
    return this.#desks.isAhead && !this.#asking.isOutOfTurn(level) ? MOST_ASKING : 1;
  }

  /** Some grants go out of turn to the level that has waited longest, if that is longer than its patience. */
  #askOutOfTurn(): void {
    const lack = this.#lack(false) - this.#leases.goingOnCount;
    const patienceMs = lack <= 0 ? undefined : this.#desks.patienceMs;
    if (patienceMs !== undefined) this.#asking.askOutOfTurn(lack, patienceMs);
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
    this.withdraw();
    for (const { token } of this.#fetched.filter(({ since }) => now - since >= QUICK_MS)) this.#goingBack.add(token);
    this.#fetched = this.#fetched.filter(({ since }) => now - since < QUICK_MS);
    const next = Math.min(
      this.#desks.letGo(now, (coming) => this.#starts.release(coming)),
      ...this.#fetched.map(({ since }) => since + QUICK_MS),
    );
    if (next !== Number.POSITIVE_INFINITY) this.#plan(next - now + 1);
    this.stir();
  }
}
