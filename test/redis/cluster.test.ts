/** Three servers that share the slots: every queue has one of its own, and nothing that Baton does crosses slots. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createCluster } from "@redis/client";
import { commandOf, startRedisCluster } from "../../servers/redis-cluster.ts";
import { cases, type ConformanceTarget } from "../../src/conformance/index.ts";
import type { Engine } from "../../src/engine/port.ts";
import { redisEngineOn } from "../../src/engines/redis/index.ts";
import { BatonError, connect } from "../../src/index.ts";
import { addEngineTests } from "../add-engine-tests.ts";
import { started } from "../started.ts";

const clients = new Set<{ destroy(): unknown }>();
after(() => {
  for (const client of clients) client.destroy();
});
const running = started(() => startRedisCluster());

/** As an application has one, which it passes to the engine and keeps. */
async function open(): Promise<Engine> {
  const client = createCluster({ rootNodes: running().servers.map(({ url }) => ({ url })) });
  client.on("error", () => undefined);
  await client.connect();
  clients.add(client);
  return await redisEngineOn(client);
}

const target: ConformanceTarget = {
  name: "redis cluster",
  open,
  restart: "The servers of a cluster are restarted elsewhere.",
};

// One of each kind of work is enough here: what is different is where keys live.
const wanted = cases.filter(({ alone, needsRestart, guarantee }) => !alone && !needsRestart && guarantee !== "G10");
const some = wanted.filter((_, index) => index % 3 === 0);
addEngineTests("the Redis engine on a cluster", target, some);

test("queues live on all servers, and one client works on all of them", { timeout: 30_000 }, async () => {
  await using baton = await connect(await open());
  const names = Array.from({ length: 24 }, (_, index) => `queue${index}`);
  await Promise.all(names.map((name) => baton.queue(name).submit("key", name)));
  const sizes = await Promise.all(running().servers.map((server) => commandOf(server, "DBSIZE")));
  assert.ok(
    sizes.every((size) => Number(size) > 0),
    `Keys on each server: ${sizes.join(", ")}`,
  );
  const done = new Set<unknown>();
  const all = Promise.withResolvers<void>();
  for (const name of names) {
    baton.queue(name).work(({ payload }) => {
      done.add(payload);
      if (done.size === names.length) all.resolve();
    });
  }
  await all.promise;
  await baton.withLock("nightly", () => undefined);
});

test("a client for one server says what to use instead", async () => {
  const [first] = running().servers;
  assert.ok(first !== undefined);
  const baton = await connect(first.url);
  const names = Array.from({ length: 12 }, (_, index) => `other${index}`);
  const ends = await Promise.allSettled(names.map((name) => baton.queue(name).submit("key", name)));
  await baton.close();
  const refused = ends.filter((end) => end.status === "rejected").map(({ reason }): unknown => reason);
  assert.ok(refused.length > 0);
  for (const error of refused) {
    assert.ok(error instanceof BatonError);
    assert.equal(error.code, "STORE_UNAVAILABLE");
    assert.match(error.message, /part of a cluster.*redisEngineOn/);
  }
});
