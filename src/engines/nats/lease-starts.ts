/** How leases begin: a key that is ready is started, or one that was idle comes into being as this process's. */
import { type Clock, elapsedMs, type Instant, instant } from "../../domain/clock.ts";
import { OutcomeUnknown } from "../../domain/errors.ts";
import type { Acknowledgements } from "./acknowledgements.ts";
import { firstState } from "./codec.ts";
import type { Freeing } from "./freeing.ts";
import { announcedBy, type KeyStore } from "./key-store.ts";
import { newLease, seenIfMine, sinceOf } from "./new-lease.ts";
import type { Held, OwnLeases } from "./own-leases.ts";
import { start } from "./rules.ts";
import { type Session, type Sessions, slackOf } from "./sessions.ts";
import { StartLooks } from "./start-looks.ts";
import { type KeyItem, type Seen, type StateLease, UNSEEN } from "./state.ts";
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
}

/** A key that is idle as far as anybody here knows, on its way to be this process's together with its first item. */
export interface First {
  /** Undefined: it was not idle, and the item is not accepted. */
  readonly written: Promise<Seen | undefined>;
  /** Never fails. Undefined: nothing is to be given out. */
  readonly held: Promise<Held | undefined>;
}

export interface LeaseStartsParts {
  readonly store: KeyStore;
  readonly sessions: Sessions;
  readonly acknowledgements: Acknowledgements;
  readonly leases: OwnLeases;
  readonly freeing: Freeing;
}

export class LeaseStarts {
  readonly #store: KeyStore;
  readonly #sessions: Sessions;
  readonly #clock: Clock;
  readonly #acknowledgements: Acknowledgements;
  readonly #leases: OwnLeases;
  readonly #freeing: Freeing;
  readonly #looks: StartLooks;

  constructor({ store, sessions, acknowledgements, leases, freeing }: LeaseStartsParts) {
    this.#store = store;
    this.#sessions = sessions;
    this.#clock = store.clock;
    this.#acknowledgements = acknowledgements;
    this.#leases = leases;
    this.#freeing = freeing;
    this.#looks = new StartLooks(store);
  }

  /** Undefined: the key does not stand as it was delivered any more. */
  start(token: Token, claimant: Claimant): Promise<Held | undefined> {
    const { leaseMs } = claimant;
    const session = this.#sessions.current(leaseMs);
    if (session !== undefined) return this.#startUnder(session, token, claimant);
    const likely = this.#sessions.likely(leaseMs);
    if (likely === undefined)
      return this.#sessions.get(leaseMs).then((fresh) => this.#startUnder(fresh, token, claimant));
    const since = instant(this.#clock);
    const alive = this.#sessions.beat(likely);
    return this.#ifAlive(alive, likely, this.#startUnder(likely, token, claimant, since));
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
      (seen) => (seen === undefined ? undefined : this.#leases.take({ key, seen, session, worker, since })),
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
    this.#store.background(this.#freeing.giveUpSurely(held.key, held.seen.state.lease?.nonce));
    return undefined;
  }

  #startUnder(
    session: Session,
    token: Token,
    claimant: Claimant,
    since = sinceOf(session, this.#clock),
  ): Promise<Held | undefined> {
    const { seen } = token;
    const lease = newLease(this.#store, session, claimant.worker, since);
    const starting: Starting = { token, claimant, lease, session, since };
    // What was to be done may have been done since the key was announced.
    if (seen.state.todo.length > 0 || announcedBy(seen) !== seen.sequence) return this.#startAgain(starting);
    return this.#looks.areWorth ? this.#startAfterLook(starting) : this.#startAsDelivered(starting);
  }

  #startAsDelivered(starting: Starting): Promise<Held | undefined> {
    const { lease, token, claimant } = starting;
    const { key, seen } = token;
    const began = (written: Seen | undefined): Held | Promise<Held | undefined> => {
      this.#looks.count(written === undefined);
      return written === undefined ? this.#startAgain(starting) : this.#started(starting, seen, written);
    };
    return this.#store
      .write(key, seen, start(seen.state, lease, claimant.mostItems))
      .then(began, (error: unknown) => seenIfMine(this.#store, key, lease, error).then(began));
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

  /** What lay below the record is removed. */
  #started(starting: Starting, { state: { below } }: Seen, written: Seen): Held {
    const { token, session, since, claimant } = starting;
    const { js, subjects } = this.#store;
    const { delivery, seen } = token;
    const held = this.#leases.take({ key: token.key, seen: written, session, worker: claimant.worker, since });
    const clear = (): Promise<unknown> => {
      const removed = below.map((sequence): Promise<unknown> => js.remove(subjects.stream, sequence));
      const acknowledged =
        delivery === undefined
          ? js.remove(subjects.stream, seen.sequence)
          : this.#acknowledgements.add(delivery.consumer, delivery.reply, seen.sequence);
      return removed.length === 0 ? acknowledged : Promise.all([acknowledged, ...removed]);
    };
    held.clear(clear, () => this.#acknowledgements.hurry());
    return held;
  }
}
