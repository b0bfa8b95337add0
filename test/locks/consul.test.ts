/** What only Consul has: its sessions and keys as they stand in it, its outages, its limits. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { type ConsulServer, startConsulCluster, startConsulServer } from "../../servers/consul-server.ts";
import { consulLocks, type ConsulStore } from "../../src/consul/index.ts";
import type { Locks } from "../../src/locks/port.ts";
import {
  ask,
  keysOf,
  LEASE_MS,
  openSession,
  sessionsOf,
  SHORT_LEASES,
  takeLock,
  tryLock,
  waitUntilWaiting,
} from "./consul-desk.ts";
import { ConsulProxy } from "./consul-proxy.ts";

const SECONDS = 1_000_000_000;

describe("locks as Consul has them", () => {
  let server: ConsulServer;
  before(async () => {
    server = await startConsulServer({ config: SHORT_LEASES });
  });
  after(() => server.stop());

  const open = (prefix: string, address = server.address): Promise<Locks> =>
    consulLocks({ address, prefix, shortestLeaseMs: 1_000 });

  test("a lock is a key that a session of Consul has locked, with its delay and behaviour", async () => {
    const locks = await open("native");
    const session = await locks.openSession({ owner: "host 1", leaseMs: 15_000, expiry: "delete" });
    const hold = await takeLock(locks, session, "lock one", { delayAfterLossMs: 7_000, data: "an address" });
    const key = (await keysOf(server, "native")).find(({ Key }) => Key === "native/lock%20one/slot/0");
    assert.ok(key !== undefined);
    assert.equal(hold.fence, key.ModifyIndex);
    const found = (await sessionsOf(server, "host 1")).find(({ ID }) => ID === key.Session);
    assert.ok(found !== undefined);
    assert.equal(found.TTL, "15000ms");
    assert.equal(found.Behavior, "delete");
    assert.equal(found.LockDelay, 7 * SECONDS);
    assert.deepEqual(found.NodeChecks, []);
    await locks.closeSession(session);
    assert.deepEqual(await keysOf(server, "native"), []);
    assert.deepEqual(await sessionsOf(server, "host 1"), []);
    await locks.close();
  });

  test("locks with different delays hang on one session, and live by one sign of life", async () => {
    const locks = await open("delays");
    const session = await openSession(locks, "many delays", LEASE_MS);
    await Promise.all(
      [0, 1_000, 60_000, 1_000].map((ms, index) =>
        takeLock(locks, session, `delay-${index}`, { delayAfterLossMs: ms }),
      ),
    );
    const delays = (await sessionsOf(server, "many delays")).map(({ LockDelay }) => LockDelay / SECONDS);
    assert.deepEqual(
      delays.toSorted((a, b) => a - b),
      [0, 1, 60],
    );
    assert.ok((await locks.renewSession(session)) !== undefined);
    // One of Consul's is destroyed by hand: the session as a whole is over, and frees everything.
    const ofASecond = (await sessionsOf(server, "many delays")).find(({ LockDelay }) => LockDelay === SECONDS);
    assert.ok(ofASecond !== undefined);
    await ask(server, `/session/destroy/${ofASecond.ID}`, { method: "PUT" });
    assert.equal(await locks.renewSession(session), undefined);
    const other = await openSession(locks, "other");
    await takeLock(locks, other, "delay-0");
    assert.deepEqual(await tryLock(locks, other, "delay-2"), { ok: false, why: "delayed" });
    await locks.close();
  });

  test("fences rise when somebody deletes the keys, though Consul's LockIndex begins anew", async () => {
    const locks = await open("fences");
    const session = await openSession(locks, "fences");
    const fences: number[] = [];
    const indexes: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const hold = await takeLock(locks, session, "deleted");
      fences.push(hold.fence);
      indexes.push((await keysOf(server, "fences")).find(({ Key }) => Key.endsWith("/slot/0"))?.LockIndex ?? 0);
      await ask(server, "/kv/fences/deleted/?recurse", { method: "DELETE" });
      assert.equal(await locks.release({ hold }), false, "it was let go of, or lost, before");
    }
    assert.deepEqual(indexes, [1, 1, 1]);
    assert.deepEqual(
      fences,
      [...new Set(fences)].toSorted((a, b) => a - b),
    );
    await locks.closeSession(session);
  });

  test("names are their own keys, whatever they consist of", async () => {
    const locks = await open("names");
    const session = await openSession(locks, "names");
    const names = ["a/b", "a%2Fb", "..", ".", "a", "a/slot/0", "ü ?#&=", "*", "x".repeat(512), "%"];
    for (const name of names) await takeLock(locks, session, name);
    const listed = (await locks.list()).map(({ name }) => name);
    assert.deepEqual(listed, names.toSorted());
    await locks.closeSession(session);
    assert.deepEqual(await locks.list(), []);
    await locks.close();
  });

  test("a session that an operator destroys ends who waits under it", async () => {
    const locks = await open("destroyed");
    const holder = await openSession(locks, "holder");
    const waiter = await openSession(locks, "waiter");
    const hold = await takeLock(locks, holder, "destroyed");
    const waiting = takeLock(locks, waiter, "destroyed");
    const ended = assert.rejects(waiting, { code: "SESSION_LOST" });
    await waitUntilWaiting(locks, "destroyed", 1);
    await ask(server, `/session/destroy/${waiter.id}`, { method: "PUT" });
    await ended;
    assert.equal(await locks.release({ hold }), true, "the lock was held until its release");
    assert.equal(await locks.read("destroyed"), undefined);
    await locks.close();
  });

  test("a grant whose reply was lost has the fence of its key", async () => {
    const proxy = await ConsulProxy.before(server.port);
    const locks = await open("lost-reply", proxy.address);
    const session = await openSession(locks, "unheard");
    proxy.loseReply();
    const hold = await takeLock(locks, session, "lock");
    const [holder] = (await locks.read("lock"))?.holders ?? [];
    assert.equal(hold.fence, holder?.fence);
    assert.equal(await locks.release({ hold }), true, "the lock was held until its release");
    assert.deepEqual(await keysOf(server, "lost-reply"), []);
    await locks.close();
  });

  test("what Consul could not do without its leader is asked for again", async () => {
    const proxy = await ConsulProxy.before(server.port);
    const locks = await open("no-leader", proxy.address);
    const session = await openSession(locks, "patient");
    proxy.loseLeader();
    const hold = await takeLock(locks, session, "lock");
    proxy.loseLeader();
    assert.equal(await locks.release({ hold }), true, "it is released with the next try");
    assert.deepEqual(await keysOf(server, "no-leader"), []);
    proxy.loseLeader();
    await locks.closeSession(session);
    assert.deepEqual(await (await ask(server, `/session/info/${session.id}`)).json(), [], "the session is gone");
    await locks.close();
  });

  test("whoever waits asks for nothing meanwhile", async () => {
    const locks = await open("quiet");
    const proxy = await ConsulProxy.before(server.port);
    const waiter = await open("quiet", proxy.address);
    const session = await openSession(waiter, "waiter");
    const holder = await openSession(locks, "holder", LEASE_MS);
    await takeLock(locks, holder, "quiet");
    const waiting = takeLock(waiter, session, "quiet");
    await waitUntilWaiting(locks, "quiet", 1);
    const asked = proxy.requests;
    // For twice the lease, until Consul gives the holder up.
    await waiting;
    // A blocking query, which may come back once for its own place in line, and the grant.
    assert.ok(proxy.requests - asked <= 4, `${proxy.requests - asked} requests`);
    await waiter.close();
    await locks.close();
  });

  test("more locks are waited for than there are connections", { timeout: 60_000 }, async () => {
    const locks = await open("crowd");
    const names = Array.from({ length: 100 }, (_, index) => `crowd-${index}`);
    const holder = await openSession(locks, "holder");
    const holds = await Promise.all(names.map((name) => takeLock(locks, holder, name)));
    const other = await open("crowd");
    const session = await openSession(other, "waiter");
    const waiting = names.map((name) => takeLock(other, session, name));
    await Promise.all(
      names.map(async (name) => {
        while ((await locks.read(name))?.waiting !== 1);
      }),
    );
    await Promise.all(holds.map((hold) => locks.release({ hold })));
    await Promise.all(waiting);
    await Promise.all([locks.close(), other.close()]);
  });

  test("retired locks whose time has passed leave no keys", async () => {
    const locks = await open("retired");
    const session = await openSession(locks, "sweeper");
    for (const name of ["done-1", "done-2"]) {
      await locks.release({ hold: await takeLock(locks, session, name), retireMs: 50 });
    }
    // Not before both are over: who waits for the last one has seen it.
    await locks.release({ hold: await takeLock(locks, session, "done-2") });
    assert.deepEqual(await locks.list(), []);
    assert.deepEqual(await keysOf(server, "retired"), []);
    await locks.close();
  });

  test("a lease below the servers' own minimum is refused, as their answer says", async () => {
    const bold = await consulLocks({ address: server.address, shortestLeaseMs: 100 });
    await assert.rejects(openSession(bold, "bold", 500), /Invalid Session TTL/);
    await bold.close();
  });
});

test("a server that hangs: who waits goes on waiting, who tries is told", { timeout: 60_000 }, async () => {
  await using server = await startConsulServer();
  const locks = await consulLocks({ address: server.address });
  assert.deepEqual(await severities(locks), ["ok", "warning"]);
  const holder = await openSession(locks, "holder");
  const waiter = await openSession(locks, "waiter");
  const hold = await takeLock(locks, holder, "hung");
  const waiting = takeLock(locks, waiter, "hung");
  await waitUntilWaiting(locks, "hung", 1);
  await server.pause();
  await assert.rejects(tryLock(locks, waiter, "another"), { code: /^(STORE_UNAVAILABLE|OUTCOME_UNKNOWN)$/ });
  const released = locks.release({ hold });
  server.resume();
  assert.equal(await released, true, "the lock was held until its release");
  assert.ok((await waiting).fence > hold.fence);
  await locks.close();
});

test("nobody there", async () => {
  await assert.rejects(consulLocks({ address: "127.0.0.1:1" }), { code: "STORE_UNAVAILABLE" });
});

test("a cluster that loses its leader keeps locks, lines and fences", { timeout: 90_000 }, async () => {
  await using cluster = await startConsulCluster();
  const leads = await Promise.all(cluster.servers.map((server) => server.isLeader()));
  const leader = cluster.servers[leads.indexOf(true)];
  const follower = cluster.servers.find((server) => server !== leader);
  assert.ok(leader !== undefined && follower !== undefined);
  const locks = await consulLocks({ address: follower.address });
  assert.deepEqual(await severities(locks), ["ok", "ok"]);
  const holder = await openSession(locks, "holder");
  const waiter = await openSession(locks, "waiter");
  const hold = await takeLock(locks, holder, "led");
  const waiting = takeLock(locks, waiter, "led");
  await waitUntilWaiting(locks, "led", 1);
  await leader.kill();
  await follower.ready();
  assert.deepEqual(
    (await locks.read("led"))?.holders.map(({ fence }) => fence),
    [hold.fence],
  );
  assert.ok((await locks.renewSession(holder)) !== undefined);
  assert.equal(await locks.release({ hold }), true, "the lock was held until its release");
  assert.ok((await waiting).fence > hold.fence);
  await locks.closeSession(waiter);
  await locks.close();
});

async function severities(locks: ConsulStore): Promise<readonly string[]> {
  return (await locks.check()).map(({ severity }) => severity);
}
