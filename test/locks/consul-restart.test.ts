/** Consul comes back with its state kept: what lived before lives on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ConsulServer, startConsulCluster, startConsulServer } from "../../servers/consul-server.ts";
import { BatonError } from "../../src/domain/errors.ts";
import { consulLocks, type ConsulStore } from "../../src/consul/index.ts";
import type { Session } from "../../src/locks/port.ts";
import { ask, openSession, sessionsOf, takeLock } from "./consul-desk.ts";

const SESSIONS = 40;
/** The log that a server reads when it starts: while it does, it answers renewals of sessions that it does not know yet with 404. */
const TRANSACTIONS = 300;
const STEPS = 64;
const ROUNDS = 3;

async function fillLog(server: ConsulServer): Promise<void> {
  const value = Buffer.from("x".repeat(200)).toString("base64");
  for (let first = 0; first < TRANSACTIONS; first += 10) {
    const writes = Array.from({ length: 10 }, async (_, index) => {
      const steps = Array.from({ length: STEPS }, (__, step) => ({
        KV: { Verb: "set", Key: `fill/${first + index}/${step}`, Value: value },
      }));
      const response = await ask(server, "/txn", { method: "PUT", body: JSON.stringify(steps) });
      assert.equal(response.status, 200);
      await response.arrayBuffer();
    });
    await Promise.all(writes);
  }
}

/** Gives signs of life without a pause while `change` goes on, and returns how many sessions were said to be over. */
async function renewWhile(
  locks: ConsulStore,
  sessions: readonly Session[],
  change: () => Promise<void>,
): Promise<number> {
  const ended = new AbortController();
  const over = new Set<string>();
  const renewals = sessions.map(async (session) => {
    while (!ended.signal.aborted && !over.has(session.id)) {
      try {
        if ((await locks.renewSession(session)) === undefined) over.add(session.id);
      } catch (error) {
        // An outage that took longer than a call waits.
        assert.ok(
          error instanceof BatonError && /^(STORE_UNAVAILABLE|OUTCOME_UNKNOWN)$/.test(error.code),
          String(error),
        );
      }
    }
  });
  await change();
  ended.abort();
  await Promise.all(renewals);
  return over.size;
}

test("a restart of the server ends no session, however often it is asked meanwhile", { timeout: 120_000 }, async () => {
  await using server = await startConsulServer({ config: { limits: { http_max_conns_per_client: 2_000 } } });
  await fillLog(server);
  const locks = await consulLocks({ address: server.address });
  const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => openSession(locks, "survivor")));
  const lost: string[] = [];
  for (const [index, session] of sessions.entries()) {
    await locks.acquire({
      session,
      name: `lock-${index}`,
      slots: 1,
      delayAfterLossMs: 0,
      signal: AbortSignal.abort(),
      lost: () => lost.push(`lock-${index}`),
    });
  }
  for (let round = 1; round <= ROUNDS; round += 1) {
    const over = await renewWhile(locks, sessions, async () => {
      await server.kill();
      await server.restart();
    });
    assert.equal(over, 0, `sessions that were said to be over in round ${round}`);
  }
  assert.deepEqual(lost, []);
  assert.equal((await sessionsOf(server, "survivor")).length, SESSIONS);
  await locks.close();
});

test("a change of the leader ends no session", { timeout: 120_000 }, async () => {
  await using cluster = await startConsulCluster({ config: { limits: { http_max_conns_per_client: 2_000 } } });
  const leads = await Promise.all(cluster.servers.map((server) => server.isLeader()));
  const leader = cluster.servers[leads.indexOf(true)];
  const follower = cluster.servers.find((server) => server !== leader);
  assert.ok(leader !== undefined && follower !== undefined);
  await fillLog(leader);
  const locks = await consulLocks({ address: follower.address });
  const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => openSession(locks, "survivor")));
  await takeLock(locks, sessions[0] as Session, "led");
  const over = await renewWhile(locks, sessions, async () => {
    await leader.kill();
    await follower.ready();
    await leader.restart();
  });
  assert.equal(over, 0);
  assert.equal((await sessionsOf(follower, "survivor")).length, SESSIONS);
  await locks.close();
});
