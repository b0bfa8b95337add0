import type { ClaimRequest, Grant } from "../../engine/port.ts";
import { Ahead, QUICK_MS } from "./ahead.ts";
import type { Claimant } from "./lease-starts.ts";
import type { Held } from "./own-leases.ts";

/** A grant that was made in advance is given back when nobody asks for it: whoever is quick would have. */
export const RESERVED_MS: number = QUICK_MS + 5;
/** One that takes longer to start is overtaken by those behind it. */
export const SLOW_MS = 1_000;

/** A call that waits for keys. */
export interface WaitingClaim {
  readonly request: ClaimRequest;
  /** When it gives up, by the monotonic clock; infinity: that is not known. */
  readonly until: number;
  readonly answer: (grants: readonly Grant[]) => void;
  readonly refuse: (error: Error) => void;
}

/** A key that is being started, or was, for a claim that waits or will come in a moment. */
export interface Coming {
  readonly level: number;
  since: number;
  readonly isFetched: boolean;
  /** Its level has waited too long: it is given out before anything else. */
  readonly isFirst: boolean;
  /** Undefined while it is being started. */
  held: Held | undefined;
  /** It goes back as soon as it is started. */
  isUnwanted: boolean;
}

/** Where the claims of one worker wait, and what is on its way to them. */
export class Desk {
  readonly worker: string;
  readonly leaseMs: number;
  /** Of a run. */
  readonly mostItems: number;
  readonly claims: WaitingClaim[] = [];
  readonly ahead: Ahead;
  /** What the claim that is first is answered with, at the end of the turn. */
  readonly giving: Grant[] = [];
  /** Submitted here, and being started by the same write. */
  readonly promised: Set<Coming> = new Set();
  /** Slots that the last answer left free, until their worker asks again. */
  #spare = 0;
  /** Of the last answer. */
  answeredAt: number = Number.NEGATIVE_INFINITY;
  readonly #grant: (coming: Coming, held: Held) => Grant;
  /** In the order in which they came, and are given out. */
  #line: Coming[] = [];
  /** The same, for claims that are to come. */
  #early: Coming[] = [];
  /** Of the last answer: keys that were fetched for it. The others went on by themselves. */
  #fetched = 0;

  constructor({ worker, leaseMs, mostItems }: Claimant, grant: (coming: Coming, held: Held) => Grant) {
    this.worker = worker;
    this.leaseMs = leaseMs;
    this.mostItems = mostItems;
    // A worker that asks for runs asks for keys ahead, too.
    this.ahead = new Ahead(mostItems === 1);
    this.#grant = grant;
  }

  /** Slots that its claims have. */
  get wanted(): number {
    let wanted = 0;
    for (const { request } of this.claims) wanted += request.max;
    return wanted;
  }

  /** Slots that nothing in line will fill. */
  get open(): number {
    return Math.max(0, this.wanted - this.#line.length);
  }

  /** Slots for something of this level: what is on its way to be started here goes before it, unless it is less urgent. */
  openAt(level: number): number {
    let open = this.open;
    for (const coming of this.promised) if (coming.level <= level) open -= 1;
    return open;
  }

  /** Whether one that was submitted here still finds its slot: one that waits, or one whose worker is about to ask again. */
  get hasRoom(): boolean {
    return this.open > 0 || (this.claims.length === 0 && this.#spare > this.coming);
  }

  /** Slots that nothing will fill, with those that will come free in a moment. */
  get lackAhead(): number {
    return Math.max(0, this.wanted + this.ahead.depth - this.coming);
  }

  /** Keys that are on their way to it. */
  get coming(): number {
    return this.#line.length + this.#early.length + this.giving.length;
  }

  /** Something more urgent than this is here already. */
  hasEarlier(level: number): boolean {
    return level > 0 && this.#early.some((coming) => coming.level < level);
  }

  /** The claim that is first hears of what there is for it. */
  answer(now: number): void {
    const [claim] = this.claims;
    const grants = this.giving.splice(0);
    this.answeredAt = now;
    this.#spare = (claim?.request.max ?? 0) - grants.length;
    claim?.answer(grants);
  }

  ask(claim: WaitingClaim, now: number): void {
    this.#spare = 0;
    this.claims.push(claim);
    this.ahead.ask(this.#fetched, now - this.answeredAt, !this.#early.some(({ held }) => held !== undefined));
  }

  add(coming: Coming, isEarly = false): void {
    (isEarly ? this.#early : this.#line).push(coming);
  }

  forget(coming: Coming): void {
    this.#line = this.#line.filter((other) => other !== coming);
    this.#early = this.#early.filter((other) => other !== coming);
  }

  /** What claims that are to come would have been given. */
  takeEarly(): readonly Coming[] {
    this.ahead.end();
    return this.#early.splice(0);
  }

  takeAll(): readonly Coming[] {
    return this.#line.splice(0).concat(this.#early.splice(0));
  }

  /** What has waited too long is given out whatever else comes. */
  gatherFirst(): void {
    if (this.claims.length > 0 && this.coming > 0) this.#fetched = 0;
    const most = this.claims[0]?.request.max ?? 0;
    this.#line = this.#line.filter((coming) => !coming.isFirst || this.giving.length >= most || !this.#give(coming));
  }

  /**
   * What of one level can be given out. False: something of it comes in a moment, and what is less urgent has to wait.
   *
   * @param promised slots that are for others than what was started early
   */
  gather(level: number, promised: number, now: number): boolean {
    const [claim] = this.claims;
    if (claim === undefined) return true;
    let most = claim.request.max;
    let isOpen = true;
    const stays = (coming: Coming): boolean => {
      if (coming.level !== level || !isOpen || this.giving.length >= most) return true;
      if (this.#give(coming)) return false;
      isOpen = now - coming.since > SLOW_MS;
      return true;
    };
    this.#line = this.#line.filter(stays);
    // What is in line has its slots.
    most -= this.#line.length + promised;
    this.#early = this.#early.filter(stays);
    return isOpen;
  }

  /** What nobody came for, or could be given while something more urgent was on its way: its lease must not run out here. */
  takeUnwanted(now: number): readonly Coming[] {
    const unwanted = [...this.#line, ...this.#early].filter(
      ({ held, since }) => held !== undefined && now - since >= RESERVED_MS,
    );
    for (const coming of unwanted) this.forget(coming);
    if (unwanted.length > 0) this.ahead.wasTooMany();
    return unwanted;
  }

  /** When to look again whether something was waited for too long. */
  nextLook(now: number): number {
    let next = Number.POSITIVE_INFINITY;
    for (const { held, since } of [...this.#line, ...this.#early]) {
      const at = since + (held === undefined ? SLOW_MS : RESERVED_MS);
      if (at > now) next = Math.min(next, at);
    }
    return next;
  }

  /** False: it is not there yet. */
  #give(coming: Coming): boolean {
    const { held } = coming;
    if (held === undefined) return false;
    if (held.over || held.session.dead) return true;
    this.giving.push(this.#grant(coming, held));
    if (coming.isFetched) this.#fetched += 1;
    return true;
  }
}
