import { startConsulServer } from "../../servers/consul-server.ts";
import type { LocksTarget } from "../../src/conformance/index.ts";
import { consulLocks } from "../../src/consul/index.ts";
import type { Locks } from "../../src/locks/port.ts";
import { addLockTests } from "./add-lock-tests.ts";
import { ConsulProxy } from "./consul-proxy.ts";
import { started } from "../started.ts";

/** Consul's own shortest lease is ten seconds; it can be told otherwise. Long enough for a machine that does other things as well. */
const LEASE_MS = 4_000;
const proxies = new Map<Locks, ConsulProxy>();

const running = started(async () => {
  // Cases run side by side, each with connections like those of several processes on several machines.
  const config = { session_ttl_min: `${LEASE_MS}ms`, limits: { http_max_conns_per_client: 10_000 } };
  return await startConsulServer({ config });
});

const target: LocksTarget = {
  name: "consul",
  async open() {
    const proxy = await ConsulProxy.before(running().port);
    const locks = await consulLocks({ address: proxy.address, shortestLeaseMs: LEASE_MS });
    proxies.set(locks, proxy);
    return locks;
  },
  async crash(locks) {
    proxyOf(locks).cut();
  },
  loseReply: (locks) => proxyOf(locks).loseReply(),
  async restart() {
    await running().kill();
    await running().restart();
  },
  leaseMs: LEASE_MS,
  // Consul waits for twice the lease, and begins anew after a restart.
  slackMs: LEASE_MS + 4_000,
};

function proxyOf(locks: Locks): ConsulProxy {
  const proxy = proxies.get(locks);
  if (proxy === undefined) throw new Error("This connection is not of the target's making.");
  return proxy;
}

// Fewer than elsewhere: each contender has connections and a session to open before the first lease of its case runs out.
// Writes of many cases at a time take their turns in its log.
addLockTests("locks on Consul", target, { concurrency: 8, timeoutMs: 180_000 });
