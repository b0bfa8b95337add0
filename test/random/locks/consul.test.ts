import { after } from "node:test";
import { startConsulServer } from "../../../servers/consul-server.ts";
import { consulLocks } from "../../../src/consul/index.ts";
import { systemClock } from "../../../src/domain/clock.ts";
import type { Locks } from "../../../src/locks/port.ts";
import { ask } from "../../locks/consul-desk.ts";
import { started } from "../../started.ts";
import { Seeds } from "../../kit/seeds.ts";
import { addRandomLockTests } from "./add-random-lock-tests.ts";
import type { LockStore } from "./player.ts";

const PREFIX = "baton/random";
const HANDLES = 2;
/** Consul's own shortest lease is ten seconds; it can be told otherwise. It waits for twice the lease. */
const LEASE_MS = 2_000;
const SLACK_MS = 20_000;

const handles: Locks[] = [];
after(() => Promise.allSettled(handles.map((locks) => locks.close())));

const running = started(async () => {
  const config = { session_ttl_min: `${LEASE_MS}ms`, limits: { http_max_conns_per_client: 2_000 } };
  const server = await startConsulServer({ config });
  for (let handle = 0; handle < HANDLES; handle += 1) {
    handles.push(await consulLocks({ address: server.address, prefix: PREFIX, shortestLeaseMs: LEASE_MS }));
  }
  const store: LockStore = {
    clock: systemClock,
    handles,
    leaseMs: LEASE_MS,
    slackMs: SLACK_MS,
    async takeAway(name) {
      await ask(server, `/kv/${PREFIX}/${encodeURIComponent(name)}/?recurse`, { method: "DELETE" });
    },
    async sessions() {
      const found: unknown = await (await ask(server, "/session/list?consistent")).json();
      return Array.isArray(found) ? found.map((one: { readonly ID: string }) => one.ID) : [];
    },
  };
  return { store, stop: () => server.stop() };
});

addRandomLockTests("locks in Consul", {
  seeds: () => new Seeds({ seeds: 16, longestMs: 4_000 }),
  atATime: 16,
  steps: 24,
  mostVanish: 1,
  mostLeases: 0,
  handles: HANDLES,
  open: () => running().store,
});
