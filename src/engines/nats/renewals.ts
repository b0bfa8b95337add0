/** How leases are kept. */
import type { Renewal, RenewResult } from "../../engine/port.ts";
import { adopt } from "./adoption.ts";
import { lookAgain, takeIn, writeHeld } from "./holder-writes.ts";
import type { KeyStore } from "./key-store.ts";
import type { Held, OwnLeases } from "./own-leases.ts";
import type { Session, Sessions } from "./sessions.ts";

export class Renewals {
  readonly #store: KeyStore;
  readonly #sessions: Sessions;
  readonly #leases: OwnLeases;

  constructor(store: KeyStore, sessions: Sessions, leases: OwnLeases) {
    this.#store = store;
    this.#sessions = sessions;
    this.#leases = leases;
  }

  async renew({ lease, leaseMs, progress }: Renewal): Promise<RenewResult> {
    const held = this.#leases.find(lease) ?? (await adopt(this.#store, this.#sessions, this.#leases, lease));
    if (held === undefined) return { ok: false };
    const session = leaseMs === held.session.leaseMs ? held.session : await this.#sessions.get(leaseMs);
    const alive = await Promise.all([this.#sessions.beat(held.session), this.#sessions.beat(session)]);
    // Nothing is to be changed, so nobody has to be told.
    const seen = await this.#store.last(held.key);
    if (alive.includes(false) || !held.streak.isMine(seen.state.lease, held.fence)) {
      this.#leases.lose(held);
      return { ok: false };
    }
    if (seen.sequence > held.streak.seen.sequence) await takeIn(this.#store, held, seen, () => !held.over);
    if (progress !== undefined || session !== held.session) {
      if (!(await this.#note(held, session, leaseMs, progress))) return { ok: false };
    }
    // Meanwhile its old deadline may have passed, and the key be on its way to somebody else.
    if (held.over) return { ok: false };
    this.#leases.renew(held, session.since, leaseMs);
    const { lease: written } = held.streak.seen.state;
    const cancelRequested = written?.fence === held.fence && written.cancelRequested;
    return { ok: true, since: held.since, cancelRequested };
  }

  /** Writes into the record what a renewal changed beside the deadline. */
  async #note(held: Held, session: Session, leaseMs: number, progress: number | undefined): Promise<boolean> {
    await held.streak.settleIn();
    await held.streak.written();
    for (;;) {
      const { lease } = held.streak.seen.state;
      if (held.over || lease?.fence !== held.fence) return false;
      const noted = { ...lease, session: session.id, leaseMs, ...(progress === undefined ? {} : { progress }) };
      const written = await writeHeld(this.#store, held, { ...held.streak.seen.state, lease: noted });
      if (written === undefined) {
        if (await lookAgain(this.#store, held)) continue;
        this.#leases.lose(held);
        return false;
      }
      held.streak.seen = written;
      if (session !== held.session) {
        this.#sessions.begin(session);
        this.#sessions.end(held.session);
        held.session = session;
      }
      return true;
    }
  }
}
