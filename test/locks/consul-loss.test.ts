/** Somebody takes a lock out of Consul while it is held: its holder hears of it at once, not at the next sign of life. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, test } from "node:test";
import { type ConsulServer, startConsulServer } from "../../servers/consul-server.ts";
import { ConsulApi } from "../../src/consul/api.ts";
import { loadUndici } from "../../src/consul/client-library.ts";
import { HoldWatch, type WatchedHold } from "../../src/consul/hold-watch.ts";
import { ConsulHttp } from "../../src/consul/http.ts";
import { consulSettings } from "../../src/consul/options.ts";
import { type Baton, type BatonEvent, connect, type HeldLock } from "../../src/index.ts";
import { until } from "../kit/until.ts";
import { started } from "../started.ts";
import { ask, keysOf } from "./consul-desk.ts";
import { ConsulProxy } from "./consul-proxy.ts";

/** No sign of life is due for minutes: what is noticed, Consul has told. */
const LEASE = "10m";
/** On an idle machine it is some milliseconds. Without the query it would be the time of its wait, a minute, or longer. */
const SOON_MS = 20_000;

interface Connected {
  readonly baton: Baton;
  readonly prefix: string;
  readonly events: readonly BatonEvent[];
}

interface Taking {
  readonly title: string;
  readonly take: (server: ConsulServer, prefix: string, name: string) => Promise<unknown>;
}

const takings: readonly Taking[] = [
  {
    title: "its keys are deleted",
    take: (server, prefix, name) => ask(server, `/kv/${prefix}/${name}?recurse`, { method: "DELETE" }),
  },
  {
    title: "its slot is deleted",
    take: (server, prefix, name) => ask(server, `/kv/${prefix}/${name}/slot/0`, { method: "DELETE" }),
  },
  {
    title: "its slot is released",
    take: async (server, prefix, name) => {
      const { Key, Session } = await slotOf(server, `${prefix}/${name}`);
      await ask(server, `/kv/${Key}?release=${Session}`, { method: "PUT" });
    },
  },
  {
    title: "its session is destroyed",
    take: async (server, prefix, name) => {
      const { Session } = await slotOf(server, `${prefix}/${name}`);
      await ask(server, `/session/destroy/${Session}`, { method: "PUT" });
    },
  },
];

describe("a lock that is taken out of Consul", { concurrency: 4 }, () => {
  const running = started(async () => {
    const config = { session_ttl_min: "1s", limits: { http_max_conns_per_client: 2_000 } };
    return await startConsulServer({ config });
  });

  async function connected(prefix: string, address = running().address): Promise<Connected> {
    const events: BatonEvent[] = [];
    const url = `consul://${address}/${prefix}?shortest-lease=1s`;
    const baton = await connect(url, { onEvent: (event) => events.push(event) });
    return { baton, prefix, events };
  }

  for (const [index, { title, take }] of takings.entries()) {
    test(`${title}: the holder's signal fires, and what runs under it is a loss`, async () => {
      const { baton, prefix } = await connected(`loss-${index}`);
      const entered = Promise.withResolvers<HeldLock>();
      const working = baton.withLock(
        "one",
        async (lock) => {
          entered.resolve(lock);
          await aborted(lock.signal);
          return "finished";
        },
        { lease: LEASE },
      );
      const outcome = assert.rejects(working, { code: "LOCK_LOST" });
      const lock = await entered.promise;
      await take(running(), prefix, "one");
      await within(aborted(lock.signal));
      assert.throws(() => lock.check(), { code: "LOCK_LOST" });
      assert.equal(lock.leftMs, 0);
      await outcome;
      // A new holder has it without the first in the way, and is left alone.
      const again = await baton.lock("one", { lease: LEASE, wait: "10s" });
      assert.ok(again.fence > lock.fence);
      again.check();
      await baton.close();
    });
  }

  test("who waits when all keys of a lock are deleted gets it", async () => {
    const [first, second] = [await connected("loss-waited"), await connected("loss-waited")];
    const lock = await first.baton.lock("one", { lease: LEASE });
    const waiting = second.baton.lock("one", { lease: LEASE });
    while ((await first.baton.locks())[0]?.waiting !== 1);
    await ask(running(), `/kv/${first.prefix}/one?recurse`, { method: "DELETE" });
    await within(waiting);
    await within(aborted(lock.signal));
    (await waiting).check();
    await Promise.all([first.baton.close(), second.baton.close()]);
  });

  test("a semaphore loses the one slot that is gone", async () => {
    const { baton, prefix, events } = await connected("loss-slots");
    const locks = await Promise.all([0, 1, 2].map(() => baton.lock("three", { lease: LEASE, slots: 3 })));
    await ask(running(), `/kv/${prefix}/three/slot/1`, { method: "DELETE" });
    await within(Promise.race(locks.map(({ signal }) => aborted(signal))));
    await baton.lock("three", { lease: LEASE, slots: 3, wait: "10s" });
    assert.equal(locks.filter(({ signal }) => signal.aborted).length, 1);
    assert.equal(events.filter(({ type }) => type === "lock-lost").length, 1);
    await baton.close();
  });

  test("a session that was opened for several locks loses them together", async () => {
    const { baton, prefix } = await connected("loss-session");
    await using session = await baton.session({ lease: LEASE });
    const [web, database] = [await session.lock("web"), await session.lock("database", { delayAfterLoss: "1s" })];
    await ask(running(), `/kv/${prefix}/web?recurse`, { method: "DELETE" });
    await within(Promise.all([aborted(session.signal), aborted(web.signal), aborted(database.signal)]));
    await baton.close();
  });

  test("a leader steps down before the next one leads for long", async () => {
    const { baton, prefix, events } = await connected("loss-election");
    const election = baton.elect("scheduler", { lease: LEASE, rest: "10m" });
    const term = await election.campaign();
    await ask(running(), `/kv/${prefix}/scheduler?recurse`, { method: "DELETE" });
    await within(aborted(term.signal));
    assert.equal(election.leading, false, "the candidate leads no more");
    assert.ok(events.some((event) => event.type === "deposed" && event.why === "lost"));
    await baton.close();
  });

  test("of more locks than there are connections, those that are gone are lost, and no others", async () => {
    const { baton, prefix } = await connected("loss-many");
    const names = Array.from({ length: 200 }, (_, index) => `lock-${index}`);
    const locks = await Promise.all(names.map((name) => baton.lock(name, { lease: LEASE })));
    const gone = locks.filter((_, index) => index % 40 === 7);
    for (const { name } of gone) await ask(running(), `/kv/${prefix}/${name}/slot/0`, { method: "DELETE" });
    await within(Promise.all(gone.map(({ signal }) => aborted(signal))));
    assert.equal(locks.filter(({ signal }) => signal.aborted).length, gone.length);
    await Promise.all(locks.map((lock) => lock.release()));
    const left = await keysOf(running(), prefix);
    assert.deepEqual(
      left.filter(({ Session }) => Session !== undefined),
      [],
    );
    await baton.close();
  });

  test("a lock that is gone at once is lost also when others are watched with one query already", async () => {
    const proxy = await ConsulProxy.before(running().port);
    const { baton, prefix } = await connected("loss-fresh", proxy.address);
    const listed = (): Promise<void> => proxy.sees(/GET \/v1\/kv\/loss-fresh\/\?recurse=.*&index=[1-9]/);
    const watched = listed();
    for (let index = 0; index < 20; index += 1) await baton.lock(`others-${index}`, { lease: LEASE });
    await watched;
    for (const name of ["first", "second", "third"]) {
      const again = listed();
      const lock = await baton.lock(name, { lease: LEASE });
      await ask(running(), `/kv/${prefix}/${name}/slot/0`, { method: "DELETE" });
      // From here on the query asks for what comes after the loss.
      await again;
      await within(aborted(lock.signal));
    }
    await baton.close();
  });

  test("a hold of which its process hears late is covered by the query that is under way", async () => {
    const proxy = await ConsulProxy.before(running().port);
    const http = new ConsulHttp(consulSettings({ address: proxy.address }, {}), await loadUndici());
    const watch = new HoldWatch(new ConsulApi(http), "loss-reply");
    const lost: string[] = [];
    const take = async (name: string): Promise<WatchedHold & { readonly heard: Promise<void> }> => {
      const key = `loss-reply/${name}`;
      const made = await ask(running(), "/session/create", { method: "PUT", body: JSON.stringify({ TTL: "1h" }) });
      const { ID: consulSession } = (await made.json()) as { readonly ID: string };
      await ask(running(), `/kv/${key}?acquire=${consulSession}`, { method: "PUT" });
      const fence = (await keysOf(running(), "loss-reply")).find(({ Key }) => Key === key)?.ModifyIndex ?? 0;
      const { promise: heard, resolve } = Promise.withResolvers<void>();
      const hold = { key, fence, nonce: "", consulSession, leaseMs: 600_000 };
      const hear = (): void => {
        lost.push(name);
        resolve();
      };
      return { ...hold, heard, lost: hear, foreign: () => undefined };
    };
    const listedAfter = proxy.sees(/GET \/v1\/kv\/loss-reply\/\?recurse=.*&index=[1-9]/);
    const late = await take("late");
    await ask(running(), `/kv/${late.key}`, { method: "DELETE" });
    for (let index = 0; index < 20; index += 1) watch.begin(await take(`other-${index}`));
    await listedAfter;
    watch.begin(late);
    await within(late.heard);
    assert.deepEqual(lost, ["late"]);
    await http.close();
  });

  test("who locks by another key beside a held lock is named while it is held, once", async () => {
    const { baton, prefix, events } = await connected("loss-foreign");
    const names = Array.from({ length: 20 }, (_, index) => `lock-${index}`);
    for (const name of names) await baton.lock(name, { lease: "3s" });
    // The first has a query of its own, the last shares one.
    for (const name of ["lock-0", "lock-19"]) await ask(running(), `/kv/${prefix}/${name}/.lock`, { method: "PUT" });
    const told = (): readonly string[] => events.flatMap((event) => (event.type === "lock-foreign" ? event.found : []));
    await until(() => told().length >= 2, "both warnings");
    // Some more looks.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    assert.deepEqual(told().toSorted(), [`${prefix}/lock-0/.lock`, `${prefix}/lock-19/.lock`]);
    await baton.close();
  });

  test("what the process itself releases is no loss", async () => {
    const { baton, events } = await connected("loss-own");
    for (let round = 0; round < 5; round += 1) {
      await Promise.all(
        Array.from({ length: 30 }, async (_, index) => {
          await using lock = await baton.lock(`own-${index}`, { lease: LEASE });
          // Long enough for its query to be under way.
          await new Promise((resolve) => setTimeout(resolve, 40 + index));
          lock.check();
        }),
      );
    }
    await using session = await baton.session({ lease: LEASE });
    await session.lock("closed");
    await session.close();
    assert.deepEqual(
      events.filter(({ type }) => type.endsWith("-lost")),
      [],
    );
    await baton.close();
  });

  test("a query that fails is no loss, and is asked again", async () => {
    const proxy = await ConsulProxy.before(running().port);
    const { baton, prefix, events } = await connected("loss-outage", proxy.address);
    const lock = await baton.lock("one", { lease: LEASE });
    await proxy.sees(/GET \/v1\/kv\/loss-outage\/one\/slot\/0/);
    proxy.breakConnections();
    await proxy.sees(/GET \/v1\/kv\/loss-outage\/one\/slot\/0/);
    lock.check();
    assert.deepEqual(
      events.filter(({ type }) => type.endsWith("-lost")),
      [],
    );
    await ask(running(), `/kv/${prefix}/one?recurse`, { method: "DELETE" });
    await within(aborted(lock.signal));
    await baton.close();
  });

  test("withLock does not resolve when only the release finds out that the lock was gone", async () => {
    const { baton, prefix } = await connected("loss-late");
    const finished = baton.withLock(
      "one",
      async () => {
        // Before a query is under way.
        await ask(running(), `/kv/${prefix}/one?recurse`, { method: "DELETE" });
      },
      { lease: LEASE },
    );
    await assert.rejects(finished, { code: "LOCK_LOST" });
    await baton.close();
  });

  test("a slot whose lock lost its coordination key is still held, and can be released", async () => {
    const { baton, prefix } = await connected("loss-coordination");
    const lock = await baton.lock("one", { lease: LEASE });
    await ask(running(), `/kv/${prefix}/one/lock`, { method: "DELETE" });
    await assert.rejects(baton.lock("one", { lease: LEASE, wait: "0s" }), { code: "LOCK_BUSY" });
    assert.equal(await lock.release(), true);
    assert.deepEqual(await keysOf(running(), prefix), []);
    await baton.close();
  });

  test("a process that forgets its lock can end", { timeout: 30_000 }, async () => {
    const script =
      `import { connect } from "${import.meta.dirname}/../../src/index.ts";` +
      `const baton = await connect("consul://${running().address}/forgotten?shortest-lease=1s");` +
      `await baton.lock("one", { lease: "10m" }); await new Promise((resolve) => setTimeout(resolve, 300));`;
    const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", script], { stdio: "inherit" });
    const [code] = (await once(child, "exit")) as [number | null];
    assert.equal(code, 0);
  });
});

/** Its queries are answered with what stood before the restore, and its indexes begin again where the snapshot was made. */
test(
  "a restore from a snapshot takes locks away, and whoever waits gets one of them",
  { timeout: 60_000 },
  async () => {
    await using server = await startConsulServer();
    const holder = await connect(`consul://${server.address}`);
    const waiter = await connect(`consul://${server.address}`);
    const old = await holder.lock("old", { lease: LEASE });
    const snapshot = await (await ask(server, "/snapshot")).arrayBuffer();
    // Of the last ones, which share a query, too.
    const names = Array.from({ length: 20 }, (_, index) => `new-${index}`);
    const locks = await Promise.all(names.map((name) => holder.lock(name, { lease: LEASE })));
    const waiting = waiter.lock("new-0", { lease: LEASE });
    while ((await holder.locks()).every((lock) => lock.waiting !== 1));
    // Until every query is under way.
    await new Promise((resolve) => setTimeout(resolve, 300));
    await ask(server, "/snapshot", { method: "PUT", body: snapshot });
    await within(Promise.all(locks.map(({ signal }) => aborted(signal))));
    // Its session and its place in line are gone as well: it comes again by itself.
    (await within(waiting)).check();
    old.check();
    await Promise.all([holder.close(), waiter.close()]);
  },
);

async function slotOf(server: ConsulServer, lock: string): Promise<{ readonly Key: string; readonly Session: string }> {
  const { Key, Session } = (await keysOf(server, lock)).find((one) => one.Key.endsWith("slot/0")) ?? {};
  assert.ok(Key !== undefined && Session !== undefined);
  return { Key, Session };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve());
  });
}

async function within<T>(something: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`nothing was heard for ${SOON_MS} ms`)), SOON_MS);
  try {
    return await Promise.race([something, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
