/** How leases are kept. */
import { OutcomeUnknown } from "../../domain/errors.ts";
import type { Renewal, RenewResult } from "../../engine/port.ts";
import { adopt } from "./adoption.ts";
import { narrow } from "./endings.ts";
import { lookAgain, takeIn, writeHeld } from "./holder-writes.ts";
import type { KeyStore } from "./key-store.ts";
import type { Held, OwnLeases } from "./own-leases.ts";
import type { Session, Sessions } from "./sessions.ts";
import { coveredOf } from "./state.ts";

export class Renewals {
  readonly #store: KeyStore;
  readonly #sessions: Sessions;
  readonly #leases: OwnLeases;

  constructor(store: KeyStore, sessions: Sessions, leases: OwnLeases) {
    this.#store = store;
    this.#sessions = sessions;
    this.#leases = leases;
  }

  async renew(renewal: Renewal): Promise<RenewResult> {
    const { lease, leaseMs, progress, ended } = renewal;
    const held = this.#leases.find(lease) ?? (await adopt(this.#store, this.#sessions, this.#leases, lease));
    if (held === undefined) return { ok: false };
    const session = leaseMs === held.session.leaseMs ? held.session : await this.#sessions.get(leaseMs);
    const alive = await Promise.all([this.#sessions.beat(held.session), this.#sessions.beat(session)]);
    const seen = await this.#store.read(held.key);
    if (alive.includes(false) || !held.isMine(seen.state.lease)) {
      this.#leases.lose(held);
      return { ok: false };
    }
    if (seen.sequence > held.seen.sequence) await takeIn(this.#store, held, seen, () => !held.over);
    const mayEnd = ended !== undefined && coveredOf(held.seen.state) > 1;
    // Another handle may have taken the lease over: then it rests on the life of that one's session.
    const isHere = session === held.session && held.seen.state.lease?.session === session.id;
    const isNoted =
      (progress === undefined && ended === undefined && isHere) || (await this.#note(held, session, renewal));
    if (!isNoted) return { ok: false };
    // Meanwhile its old deadline may have passed, and the key be on its way to somebody else; what ended before that is written.
    if (held.over && mayEnd && !held.isEnding) throw new OutcomeUnknown("a renewal");
    if (held.over) return { ok: false };
    this.#leases.renew(held, session.since, leaseMs);
    const { lease: written } = held.seen.state;
    const cancelRequested = written?.fence === held.fence && written.cancelRequested;
    return { ok: true, since: held.since, cancelRequested };
  }

  /** What is behind the first of a run goes back, before anybody has heard of it. */
  async narrow(held: Held): Promise<boolean> {
    held.behind = [];
    return await this.#note(held, held.session, { leaseMs: held.leaseMs, ended: [] });
  }

  /** Writes into the record what a renewal changed beside the deadline. */
  async #note(held: Held, session: Session, { leaseMs, progress, ended }: Omit<Renewal, "lease">): Promise<boolean> {
    const { key } = held;
    await held.cleared();
    for (;;) {
      const { state } = held.seen;
      const narrowed = ended === undefined ? undefined : narrow(key, state, ended, this.#store.clock.wall());
      const { lease } = narrowed ?? state;
      if (held.over || lease?.fence !== held.fence) return false;
      // What ended was reported before.
      if (narrowed === undefined && progress === undefined && lease.session === session.id) return true;
      const noted = { ...lease, session: session.id, leaseMs, ...(progress === undefined ? {} : { progress }) };
      const written = await writeHeld(this.#store, held, { ...(narrowed ?? state), lease: noted });
      if (written === undefined) {
        if (await lookAgain(this.#store, held)) continue;
        this.#leases.lose(held);
        return false;
      }
      // As long as this is not done, the record says so, and whoever sees it does it.
      await this.#store.perform(key, written.state);
      if (written.sequence > held.seen.sequence)
        held.seen = { sequence: written.sequence, state: { ...written.state, todo: [] } };
      if (session !== held.session) {
        this.#sessions.begin(session);
        this.#sessions.end(held.session);
        held.session = session;
      }
      return true;
    }
  }
}
