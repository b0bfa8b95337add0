/** Closing in the very moment in which a connection comes back: nothing may keep the process alive afterwards. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn, setTimeout as wait } from "node:timers/promises";
import { createClient } from "@redis/client";
import { startRedisServer } from "../../servers/redis-server.ts";
import { destroyForGood } from "../../src/engines/redis/destroy-for-good.ts";

const PING_MS = 20;
/** Turns of the event loop between the connection and the end, which hit every step of the greeting. */
const MOST_TURNS = 12;

test("a client that is destroyed while it connects leaves no timer behind", { timeout: 60_000 }, async (context) => {
  const server = await startRedisServer();
  context.after(() => server.stop());
  const before = timers();
  for (let turns = 0; turns < MOST_TURNS; turns += 1) {
    const client = createClient({ url: server.url, name: "baton", pingInterval: PING_MS });
    client.on("error", () => undefined);
    const connected = client.connect().catch(() => undefined);
    for (let count = 0; count < turns; count += 1) await turn();
    destroyForGood(client);
    await connected;
  }
  await wait(3 * PING_MS);
  assert.equal(timers(), before);
});

function timers(): number {
  return process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
}
