/**
 * A process with all kinds of calls under way, which closes its engine while the server stands still. It ends by itself, unless something is
 * left that keeps it alive; an error that nothing waits for would end it with another exit code.
 */
import { once } from "node:events";
import type { Engine } from "../../src/engine/port.ts";
import { openNatsUrl } from "../../src/engines/nats/index.ts";
import { openPostgresUrl } from "../../src/engines/postgres/index.ts";
import { openRedisUrl } from "../../src/engines/redis/index.ts";
import { claim, entry } from "../cars.ts";

const [url = "", isLost = ""] = process.argv.slice(2);
const LEASE_MS = 60_000;

async function open(): Promise<Engine> {
  if (url.startsWith("nats:")) return await openNatsUrl(url);
  return await (url.startsWith("redis:") ? openRedisUrl(url) : openPostgresUrl(url));
}

const engine = await open();
await engine.declare({ queue: "cars" });
const { signal } = new AbortController();
const lost = (): void => undefined;
const [submitted] = await engine.submit([{ ...entry, key: "car", keepMs: LEASE_MS }]);
const [grant] = await engine.claim({ ...claim, signal });
if (submitted?.ok !== true || grant === undefined) throw new Error("There is no lease to begin with.");
const { id } = submitted.accepted;
const locks = engine.locks?.();
const session = await locks?.openSession({ owner: "one", leaseMs: LEASE_MS, expiry: "release" });
const waiting: Promise<unknown>[] = [
  engine.claim({ ...claim, signal }),
  engine.hold({ queue: "cars", key: "car", worker: "other", leaseMs: LEASE_MS, signal, lost }),
  engine.outcome({ queue: "cars", id, signal }),
];
if (locks !== undefined) waiting.push(locks.watch({ name: "night", changed: () => undefined, signal }));
const settled = Promise.allSettled(waiting);
// Answered after what was asked before.
await engine.queues({ queue: "cars" });
const told = once(process, "message");
process.send?.("ready");
await told;
const begun = [
  ...(isLost === "" ? [] : [engine.submit([{ ...entry, key: "late" }])]),
  ...(isLost === "" || locks === undefined ? [] : [locks.watch({ name: "day", changed: () => undefined, signal })]),
  engine.find({ queue: "cars", id }),
  engine.settle([{ lease: grant.lease, ending: { type: "done" } }]),
  ...(session === undefined || locks === undefined ? [] : [locks.renewSession(session)]),
];
const ended = Promise.allSettled(begun);
const from = performance.now();
await engine.close();
const closedMs = performance.now() - from;
const isSettled = (await ended).map(({ status }) => status);
await settled;
process.send?.({ closedMs, answeredMs: performance.now() - from, results: isSettled });
process.disconnect();
