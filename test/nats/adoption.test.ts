/** A lease is data: whoever has it renews and settles it through any handle, also one of another process. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import type { Engine, Grant, Lease } from "../../src/engine/port.ts";
import { openNatsUrl } from "../../src/engines/nats/index.ts";
import { NatsDesk } from "./desk.ts";
import { submit, take } from "./engine-calls.ts";

const TIMEOUT = { timeout: 60_000 };
const LEASE_MS = 800;
/** Others wait a little longer than a lease lasts before they take its key. */
const OVER_MS = LEASE_MS * 2;
const DONE = { type: "done" } as const;

interface Yard {
  readonly one: Engine;
  readonly other: Engine;
  readonly third: Engine;
}

function play(name: string, work: (yard: Yard) => Promise<void>): void {
  test(name, TIMEOUT, async (context) => {
    await work(await open(context));
  });
}

async function open(context: TestContext): Promise<Yard> {
  const { server } = await NatsDesk.withServer(context);
  const engines = await Promise.all([1, 2, 3].map(() => openNatsUrl(server.url)));
  const [one, other, third] = engines;
  assert.ok(one !== undefined && other !== undefined && third !== undefined);
  context.after(() => Promise.all(engines.map((engine) => engine.close())));
  for (const engine of engines) await engine.declare({ queue: "cars" });
  return { one, other, third };
}

/** As it comes out of somebody's database. */
function copyOf({ queue, key, fence, since }: Lease): Lease {
  return { queue, key, fence, since: { ...since }, handle: undefined };
}

play("it is settled through another handle, and then through none", async ({ one, other }) => {
  await submit(one, {}, {});
  const [grant] = await take(one);
  assert.ok(grant !== undefined);
  const lease = copyOf(grant.lease);
  assert.deepEqual(await other.settle([{ lease, ending: DONE }]), ["settled"]);
  assert.deepEqual(await one.settle([{ lease: grant.lease, ending: DONE }]), ["lost"]);
  assert.deepEqual(await other.settle([{ lease, ending: DONE }]), ["lost"]);
  const [next] = await take(one);
  assert.deepEqual([next?.item.attempt, next?.behind], [1, undefined]);
});

play("a run ends through another handle, and goes on there", async ({ one, other }) => {
  await submit(one, { id: "a" }, { id: "b" }, { id: "c" }, { id: "d" });
  const [grant] = await take(one, { items: 2 });
  assert.deepEqual([grant?.item.id, grant?.behind?.map(({ id }) => id)], ["a", ["b"]]);
  assert.ok(grant !== undefined);
  const ended = [{ id: "a", ending: DONE }];
  const next = { worker: "other", leaseMs: LEASE_MS };
  const settlement = { lease: copyOf(grant.lease), ended, ending: DONE, next };
  assert.deepEqual(await other.settle([settlement]), ["settled"]);
  assert.deepEqual((await take(other))[0]?.item.id, "c");
});

play("one that another handle renews outlives the handle that took it", async ({ one, other, third }) => {
  await submit(one, {}, {});
  const [grant] = await take(one, { leaseMs: LEASE_MS });
  assert.ok(grant !== undefined);
  let lease = copyOf(grant.lease);
  const renew = async (): Promise<void> => {
    const [result] = await other.renew([{ lease, leaseMs: LEASE_MS }]);
    assert.ok(result?.ok === true);
    lease = { ...lease, since: result.since };
  };
  await renew();
  await one.close();
  await keepFrom(third, grant, renew);
  assert.deepEqual(await other.settle([{ lease, ending: DONE }]), ["settled"]);
});

play("one that was renewed elsewhere rests on whoever renewed it last", async ({ one, other, third }) => {
  await submit(one, {});
  const [grant] = await take(one, { leaseMs: LEASE_MS });
  assert.ok(grant !== undefined);
  assert.ok((await other.renew([{ lease: copyOf(grant.lease), leaseMs: LEASE_MS }]))[0]?.ok === true);
  assert.ok((await one.renew([{ lease: grant.lease, leaseMs: LEASE_MS }]))[0]?.ok === true);
  await other.close();
  await keepFrom(third, grant, async (ms) => {
    assert.ok((await one.renew([{ lease: grant.lease, leaseMs: LEASE_MS }]))[0]?.ok === true, `after ${ms} ms`);
  });
});

play("one that has run out is lost through any handle", async ({ one, other }) => {
  await submit(one, {});
  const [grant] = await take(one, { leaseMs: LEASE_MS });
  assert.ok(grant !== undefined);
  await wait(LEASE_MS);
  const lease = copyOf(grant.lease);
  assert.deepEqual(await other.renew([{ lease, leaseMs: LEASE_MS }]), [{ ok: false }]);
  assert.deepEqual(await other.settle([{ lease, ending: DONE }]), ["lost"]);
});

/** For longer than the lease: while it is renewed, another handle that asks for work gets nothing. */
async function keepFrom(other: Engine, { lease }: Grant, renew: (ms: number) => Promise<void>): Promise<void> {
  const enough = new AbortController();
  const request = { ...lease, worker: "third", max: 1, leaseMs: LEASE_MS, patienceMs: 0, signal: enough.signal };
  const taking = other.claim(request);
  for (let ms = 0; ms < OVER_MS; ms += LEASE_MS / 4) {
    await wait(LEASE_MS / 4);
    await renew(ms);
  }
  enough.abort();
  assert.deepEqual(await taking, []);
}
