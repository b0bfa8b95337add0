/**
 * What processes that died have left: leases, and changes that they did not finish. Any number of processes may look for it at once; they
 * only repeat each other. Where much waits there are many records, and each is looked at: page by page, leases first, and with no
 * further question about a key that stands as it should.
 */
import { asError } from "./as-error.ts";
import type { KeyStore } from "./key-store.ts";
import type { Leases } from "./leases.ts";
import { lookAgain } from "./operate.ts";
import { type Found, readRecords } from "./records.ts";
import type { Sessions } from "./sessions.ts";

/** Keys that are finished at the same time. */
const TOGETHER = 64;

type Work = () => Promise<unknown>;

export async function reap(store: KeyStore, leases: Leases, sessions: Sessions): Promise<void> {
  const failures: unknown[] = [];
  const unfinished: Work[] = [];
  let living: ReadonlySet<string> = new Set();
  for await (const page of store.js.pagesOfLast(store.subjects.stream, store.subjects.allRecords)) {
    const found = readRecords(page);
    // A session may have begun since: only one that is not there after its lease was read is gone.
    if (found.some(({ state: { lease } }) => lease !== undefined && !living.has(lease.session)))
      living = await sessions.living();
    const dead = found.filter(({ state: { lease } }) => lease !== undefined && !living.has(lease.session));
    const free =
      ({ key, state: { lease } }: Found): Work =>
      () =>
        leases.putBack(key, ({ session }) => session === lease?.session);
    failures.push(...(await failuresOf(dead.map(free))));
    unfinished.push(...found.flatMap((one) => finish(store, one)));
  }
  failures.push(...(await failuresOf(unfinished)));
  if (failures.length > 0) throw asError(failures[0]);
}

/** A back-off whose end may never be told, and an idle key that cannot vanish. */
function finish(store: KeyStore, { key, sequence, state }: Found): readonly Work[] {
  const { kind, paused, todo, below, takenLeft } = state;
  if (kind === "parked" && !paused) return [() => lookAgain(store, key)];
  if (kind === "idle" && (todo.length > 0 || below.length > 0 || takenLeft > 0))
    return [() => store.letGo(key, (seen) => (seen.sequence === sequence ? seen.state : undefined))];
  return [];
}

/** One key that cannot be changed now must not keep the others. */
async function failuresOf(work: readonly Work[]): Promise<readonly unknown[]> {
  const failures: unknown[] = [];
  for (let from = 0; from < work.length; from += TOGETHER) {
    const results = await Promise.allSettled(work.slice(from, from + TOGETHER).map((one) => one()));
    for (const result of results) if (result.status === "rejected") failures.push(result.reason);
  }
  return failures;
}
