import { elapsedMs } from "../../domain/clock.ts";
import type { Lease } from "../../engine/port.ts";
import { tokenOf } from "./key-token.ts";
import type { KeyStore } from "./key-store.ts";
import type { Held, OwnLeases } from "./own-leases.ts";
import type { Sessions } from "./sessions.ts";
import type { StateLease } from "./state.ts";

/** A lease that another handle took, and that is settled or renewed through this one. */
export async function adopt(
  store: KeyStore,
  sessions: Sessions,
  leases: OwnLeases,
  lease: Lease,
): Promise<Held | undefined> {
  const { handle } = lease;
  if (leases.own(handle) !== undefined) return undefined;
  const key = tokenOf(lease.key);
  const isIt = ({ fence, leaseMs }: StateLease): boolean =>
    fence === lease.fence && elapsedMs(store.clock, lease.since) < leaseMs;
  const found = await store.read(key);
  if (found.state.lease === undefined || !isIt(found.state.lease)) return undefined;
  if (!(await sessions.isAlive(found.state.lease.session))) return undefined;
  const session = await sessions.get(found.state.lease.leaseMs);
  const written = await store.change(key, ({ state }) =>
    state.lease === undefined || !isIt(state.lease)
      ? undefined
      : { ...state, lease: { ...state.lease, session: session.id } },
  );
  if (written === undefined) return undefined;
  return leases.take({
    key,
    seen: { ...written, state: { ...written.state, below: [], todo: [] } },
    session,
    worker: written.state.lease?.worker ?? "",
    since: lease.since,
  });
}
