/** How leases begin: a key that is ready is started, or one that was idle comes into being as this process's. */
import { type Clock, elapsedMs, type Instant, instant } from "../../domain/clock.ts";
import { OutcomeUnknown } from "../../domain/errors.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import type { Batch } from "./brief-batches.ts";
import type { BriefLeases } from "./brief-leases.ts";
import { asError } from "./as-error.ts";
import { firstState } from "./codec.ts";
import type { Freeing } from "./freeing.ts";
import { announcedBy, type KeyStore } from "./key-store.ts";
import { newLease, seenIfMine, sinceOf } from "./new-lease.ts";
import type { Held, OwnLeases } from "./own-leases.ts";
import { start } from "./rules.ts";
import { type Session, type Sessions, slackOf } from "./sessions.ts";
import { StartLooks } from "./start-looks.ts";
import { coveredOf, type KeyItem, type Seen, type StateLease, UNSEEN } from "./state.ts";
import type { Token } from "./token.ts";

/** Items keep coming to a key that is about to start; then it is somebody's next try. */
const MOST_STARTS = 8;

/** Who claims keys, and how. */
export interface Claimant {
  readonly worker: string;
  readonly leaseMs: number;
  /** Of a run. */
  readonly mostItems: number;
}

/** A key that is about to be this process's. */
interface Starting {
  readonly token: Token;
  readonly claimant: Claimant;
  readonly lease: StateLease;
  readonly session: Session;
  readonly since: Instant;
  /** By the monotonic clock. */
  readonly begun: number;
  /** Its item will most likely be done in a moment. */
  readonly isBrief: boolean;
}

/** A key that is idle as far as anybody here knows, on its way to be this process's together with its first item. */
export interface First {
  /** Undefined: it was not idle, and the item is not accepted. */
  readonly written: Promise<Seen | undefined>;
  /** Never fails. Undefined: nothing is to be given out. */
  readonly held: Promise<Held | undefined>;
}

export class LeaseStarts {
  readonly #store: KeyStore;
  readonly #sessions: Sessions;
  readonly #clock: Clock;
  readonly #acknowledgements: Acknowledgements;
  readonly #leases: OwnLeases;
  readonly #freeing: Freeing;
  readonly #briefs: BriefLeases;
  readonly #looks: StartLooks;

  constructor(
    store: KeyStore,
    sessions: Sessions,
    acknowledgements: Acknowledgements,
    leases: OwnLeases,
    freeing: Freeing,
    briefs: BriefLeases,
  ) {
    this.#store = store;
    this.#sessions = sessions;
    this.#clock = store.clock;
    this.#acknowledgements = acknowledgements;
    this.#leases = leases;
    this.#freeing = freeing;
    this.#briefs = briefs;
    this.#looks = new StartLooks(store);
  }

  /**
   * Undefined: the key does not stand as it was delivered any more.
   *
   * @param isBrief its item will most likely be done in a moment
   */
  start(token: Token, claimant: Claimant, isBrief: boolean): Promise<Held | undefined> {
    const begun = this.#clock.monotonic();
    const { leaseMs } = claimant;
    const session = this.#sessions.current(leaseMs);
    const under = (one: Session, since?: Instant): Promise<Held | undefined> =>
      this.#startUnder(one, token, claimant, begun, isBrief, since);
    if (session !== undefined) return under(session);
    const likely = this.#sessions.likely(leaseMs);
    if (likely === undefined) return this.#sessions.get(leaseMs).then((fresh) => under(fresh));
    const since = instant(this.#clock);
    const alive = this.#sessions.beat(likely);
    return this.#ifAlive(alive, likely, under(likely, since));
  }

  /**
   * A submission and a start in one write, for a claim that waits here. Undefined: there is no session for it, and nothing was done.
   * If it cannot be known whether it was written, or nobody may rest on it, the key goes back, and no attempt is counted.
   */
  startFirst(key: string, item: KeyItem, claimant: Claimant): First | undefined {
    const { worker, leaseMs } = claimant;
    const current = this.#sessions.current(leaseMs);
    const session = current ?? this.#sessions.likely(leaseMs);
    if (session === undefined) return undefined;
    const since = instant(this.#clock);
    const alive = current === undefined ? this.#sessions.beat(session) : undefined;
    const lease = newLease(this.#store, session, worker, since);
    const isGood = (): boolean => !session.dead && elapsedMs(this.#clock, since) < leaseMs;
    const written = this.#store.write(key, UNSEEN, start(firstState(item), lease), isGood);
    const held = written.then(
      (seen) =>
        seen === undefined ? undefined : this.#take(key, seen, { claimant, session, since, begun: since.monotonic }),
      (error: unknown) => {
        // Whatever else went wrong, nothing was written.
        if (error instanceof OutcomeUnknown) this.#store.background(this.#freeing.giveUpSurely(key, lease.nonce));
        return undefined;
      },
    );
    return { written, held: alive === undefined ? held : this.#ifAlive(alive, session, held) };
  }

  /** A lease that was written while its session gave a sign of life: nobody hears of it unless that was heard. */
  async #ifAlive(
    beat: Promise<boolean>,
    session: Session,
    starting: Promise<Held | undefined>,
  ): Promise<Held | undefined> {
    const [alive, held] = await Promise.all([beat.catch(() => false), starting]);
    if (held === undefined) return undefined;
    // The sign may have been on its way for a while, and counts from when it was sent.
    if (held.since.monotonic - session.since.monotonic > slackOf(session.leaseMs)) held.since = session.since;
    if (alive) return held;
    this.#leases.lose(held);
    this.#store.background(this.#freeing.giveUpSurely(held.key, held.streak.seen.state.lease?.nonce));
    return undefined;
  }

  #startUnder(
    session: Session,
    token: Token,
    claimant: Claimant,
    begun: number,
    isBrief: boolean,
    since = sinceOf(session, this.#clock),
  ): Promise<Held | undefined> {
    const { seen } = token;
    const lease = newLease(this.#store, session, claimant.worker, since);
    const starting: Starting = { token, claimant, lease, session, since, begun, isBrief };
    // What was to be done may have been done since the key was announced.
    if (seen.state.todo.length > 0 || announcedBy(seen) !== seen.sequence) return this.#startAgain(starting);
    return this.#looks.areWorth ? this.#startAfterLook(starting) : this.#startAsDelivered(starting);
  }

  #startAsDelivered(starting: Starting): Promise<Held | undefined> {
    const { lease, session, token, claimant } = starting;
    const { key, seen } = token;
    const batch = starting.isBrief ? this.#briefs.enter(session, token) : undefined;
    if (batch !== undefined) return this.#startBriefly(starting, batch);
    const began = (written: Seen | undefined): Held | Promise<Held | undefined> => {
      this.#looks.count(written === undefined);
      return written === undefined ? this.#startAgain(starting) : this.#started(starting, seen, written);
    };
    return this.#store
      .write(key, seen, start(seen.state, lease, claimant.mostItems))
      .then(began, (error: unknown) => seenIfMine(this.#store, key, lease, error).then(began));
  }

  #startBriefly(starting: Starting, batch: Batch): Promise<Held | undefined> {
    const { lease } = starting;
    const { key, seen, delivery } = starting.token;
    const began = (written: Seen | undefined): Held | Promise<Held | undefined> => {
      this.#looks.count(written === undefined);
      if (written === undefined || delivery === undefined) {
        this.#briefs.leave(batch);
        return this.#startAgain(starting);
      }
      const held = this.#take(key, written, starting);
      this.#briefs.begin(held, batch, delivery);
      return held;
    };
    return this.#store.writeBrief(key, seen, start(seen.state, lease), batch.name).then(began, (error: unknown) => {
      if (error instanceof OutcomeUnknown) {
        // It may have begun, or begin yet: nobody here ends it, and nobody else would.
        this.#briefs.abandon(batch);
        this.#store.background(this.#freeing.giveUpSurely(key, lease.nonce, seen.sequence));
      } else {
        this.#briefs.leave(batch);
      }
      throw asError(error);
    });
  }

  async #startAfterLook(starting: Starting): Promise<Held | undefined> {
    const { key, seen } = starting.token;
    const record = await this.#looks.at(key);
    // One that is older lies below the message that was delivered.
    if (record === undefined || record.sequence < seen.sequence) return await this.#startAsDelivered(starting);
    this.#looks.count(true);
    return await this.#startAgain(starting, record);
  }

  /** More may have come to the key since it was announced. */
  async #startAgain(starting: Starting, record?: Seen): Promise<Held | undefined> {
    const { key, seen } = starting.token;
    let known = record;
    for (let tries = MOST_STARTS; tries > 0; tries -= 1) {
      const found = known ?? (await this.#store.read(key));
      known = undefined;
      if (announcedBy(found) !== seen.sequence) return undefined;
      const written = await this.#startFrom(key, found, starting);
      if (written !== undefined) return this.#started(starting, found, written);
    }
    return undefined;
  }

  async #startFrom(key: string, seen: Seen, { lease, claimant }: Starting): Promise<Seen | undefined> {
    // Whoever made the key ready may have died before this was done; a record that does not list it must not come first.
    if (seen.state.todo.length > 0) await this.#store.perform(key, seen.state);
    try {
      return await this.#store.write(key, seen, start({ ...seen.state, todo: [] }, lease, claimant.mostItems));
    } catch (error) {
      return await seenIfMine(this.#store, key, lease, error);
    }
  }

  #started(starting: Starting, { state }: Seen, written: Seen): Held {
    const { token } = starting;
    const held = this.#take(token.key, written, starting);
    this.#prepare(held, () => this.#settleIn(held, state.below, token));
    return held;
  }

  #take(
    key: string,
    written: Seen,
    { claimant, session, since, begun }: Pick<Starting, "claimant" | "session" | "since" | "begun">,
  ): Held {
    const held = this.#leases.takeFirst(key, written, session, claimant.worker, since, begun);
    held.mostItems = claimant.mostItems;
    held.behind = written.state.items.slice(1, coveredOf(written.state));
    return held;
  }

  #prepare({ streak }: Held, prepare: () => Promise<void>): void {
    streak.prepare = prepare;
    streak.isReady = false;
    streak.ready = prepare();
    // Whoever settles hears of it, and tries again.
    streak.ready.catch(() => undefined);
  }

  /** After a lease has begun: what lay below it is removed. */
  #settleIn({ streak }: Held, below: readonly number[], { delivery, seen }: Token): Promise<void> {
    const { js, subjects } = this.#store;
    const acknowledged =
      delivery === undefined
        ? js.remove(subjects.stream, seen.sequence)
        : this.#acknowledgements.add(delivery.consumer, delivery.reply, seen.sequence);
    const removed: Promise<unknown> =
      below.length === 0
        ? acknowledged
        : Promise.all([acknowledged, ...below.map((sequence) => js.remove(subjects.stream, sequence))]);
    return removed.then(() => {
      // All below is gone now; nothing has to be said about it any more.
      streak.seen = { sequence: streak.seen.sequence, state: { ...streak.seen.state, below: [] } };
      streak.isReady = true;
    });
  }
}
