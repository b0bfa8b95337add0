/** A worker that is known to be quick, and so may begin a key's next items before the store hears of it. */
import { setImmediate as turn } from "node:timers/promises";
import type { ClaimRequest, Engine, Grant, Submission } from "../../src/engine/port.ts";
import { claim as oneClaim, entry } from "../cars.ts";

const SLOTS = 16;
/** Keys that were begun too slowly, on a busy machine, to be any use. */
const MOST_TRIES = 50;
/** What comes from the store takes longer while its reports are slow. */
const AT_ONCE_MS = 100;

export const claim: Omit<ClaimRequest, "signal"> = { ...oneClaim, max: SLOTS };

/** `change` is for the one of that number, or for all. */
export function items(key: string, count: number, change: Partial<Submission> = {}, only?: number): Submission[] {
  return Array.from({ length: count }, (_, n) => ({
    ...entry,
    key,
    keyLimit: 1_000,
    queueLimit: 1_000_000,
    payload: { type: "text/plain", body: `${n}` },
    ...(only === undefined || only === n ? change : {}),
  }));
}

export function next(engine: Engine, withinMs: number, request: Partial<ClaimRequest> = {}): Promise<readonly Grant[]> {
  return engine.claim({ ...claim, ...request, signal: AbortSignal.timeout(withinMs) });
}

/** As many keys as there are slots, ended at once. */
export async function becomeQuick(engine: Engine, request: Partial<ClaimRequest> = {}): Promise<void> {
  await engine.submit(Array.from({ length: SLOTS }, (_, n) => items(`quick${n}`, 1)).flat());
  for (let left = SLOTS; left > 0;) {
    const grants = await next(engine, 10_000, request);
    left -= grants.length;
    await engine.settle(grants.map(({ lease }) => ({ lease, ending: { type: "done" } })));
  }
}

export interface Begun {
  readonly key: string;
  /** In the order in which they began. All but the last were done. */
  readonly grants: readonly Grant[];
  /** What was said of the others: not answered yet, since the store is slow. */
  readonly settled: readonly Promise<unknown>[];
}

/** Makes what the store is told of done items take so long. */
export const SLOW_REPORTS = (seconds: number): string =>
  `CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(${seconds}); RETURN NULL; END';
   CREATE OR REPLACE TRIGGER slow AFTER DELETE ON baton.item FOR EACH STATEMENT EXECUTE FUNCTION slow()`;

export interface Plan {
  /** So many are begun before the store hears that the first is done. */
  readonly count: number;
  readonly submissions: (key: string) => readonly Submission[];
  readonly request?: Partial<ClaimRequest>;
  /** The first has begun, and nothing else. */
  readonly begun?: () => void;
}

/** Reports must be slow. On a busy machine a key's time may be over too soon; then it is the next key's turn. */
export async function runAhead(engine: Engine, { count, submissions, request, begun }: Plan): Promise<Begun> {
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const key = `k${tries}`;
    await engine.submit(submissions(key));
    const [first] = await next(engine, 10_000, request);
    if (first === undefined) throw new Error("There is work, and nobody gets it.");
    const grants = [first];
    const settled: Promise<unknown>[] = [];
    begun?.();
    while (grants.length < count) {
      const { settling, more, late } = await goOn(engine, grants, request);
      settled.push(settling);
      if (late !== undefined) settled.push(engine.settle([{ lease: late.lease, ending: { type: "release" } }]));
      if (more === undefined) break;
      grants.push(more);
    }
    if (grants.length === count) return { key, grants, settled };
    await Promise.all(settled);
    await engine.pause({ queue: "cars", key, paused: true });
    await becomeQuick(engine, request);
  }
  throw new Error("Nobody was ever ahead.");
}

export interface WentOn {
  readonly settling: Promise<unknown>;
  /** What began before the store knew that the last was done. */
  readonly more: Grant | undefined;
  /** What began afterwards. On a machine that stands still, both may have happened before anybody could look. */
  readonly late: Grant | undefined;
}

/** The last is done. What begins then? */
export async function goOn(
  engine: Engine,
  grants: readonly Grant[],
  request: Partial<ClaimRequest> = {},
): Promise<WentOn> {
  const last = grants.at(-1);
  if (last === undefined) throw new Error("Nothing has begun.");
  let isKnown = false;
  const settling = engine.settle([{ lease: last.lease, ending: { type: "done" } }]);
  settling.then(
    () => {
      isKnown = true;
    },
    () => undefined,
  );
  const [begun] = await next(engine, AT_ONCE_MS, request);
  // One answer of the store may bring both.
  await turn();
  return { settling, more: isKnown ? undefined : begun, late: isKnown ? begun : undefined };
}
