/** Anybody may publish on a carrier: what is said there of a lease makes its holder ask, and ends nothing. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { startPostgres } from "../../servers/postgres.ts";
import { startRedisServer } from "../../servers/redis-server.ts";
import { type BatonEvent, connect } from "../../src/index.ts";
import { MemoryWakes } from "../../src/wake/memory.ts";
import { started } from "../started.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-losses-"));
const stopFolder = async (): Promise<void> => rmSync(folder, { recursive: true, force: true });
const sqlite = started(async () => ({ url: `sqlite:${join(folder, "store.db")}`, stop: stopFolder }));
const postgres = started(() => startPostgres());
const redis = started(() => startRedisServer());

/** Deadlines are reported by a clock that is not the one they are kept by. */
const JITTER_MS = 10;
/** Handles of a store on PostgreSQL are numbered from one. */
const HANDLES = Array.from({ length: 20 }, (_, number) => String(number + 1));

for (const [name, server] of Object.entries({ sqlite, postgres, redis })) {
  describe(`a store on ${name} whose carrier says falsely that a lease is lost`, { timeout: 60_000 }, () => {
    test("asks, and its handler goes on", async () => {
      const wakes = new MemoryWakes();
      const events: BatonEvent[] = [];
      const onEvent = (event: BatonEvent): void => void events.push(event);
      // So long that no renewal comes by itself.
      await using baton = await connect(server().url, { wake: wakes.connect(), onEvent });
      const cars = baton.queue("cars", { lease: "10m", history: "1h" });
      const stranger = wakes.connect();
      const deadline = async (): Promise<number> => (await cars.keys({ limit: 1 }))[0]?.running?.deadline ?? 0;
      const held = Promise.withResolvers<boolean>();
      const worker = cars.work(async (_, lease) => {
        // Another store on the carrier that has the same numbers, or somebody who publishes whatever he likes; again and again.
        for (let round = 0; round < 2; round += 1) {
          const since = await deadline();
          while ((await deadline()) < since + JITTER_MS) {
            const entries = [["cars", "car1", lease.fence], ...HANDLES.map((handle) => ["", handle, lease.fence])];
            await stranger.publish([{ channel: "baton.lost", text: JSON.stringify(["somebody", ...entries]) }]);
          }
        }
        held.resolve(!lease.signal.aborted);
      });
      const receipt = await cars.submit("car1", null);
      assert.ok(await held.promise);
      assert.equal((await receipt.outcome())?.state, "done");
      assert.deepEqual(
        events.filter(({ type }) => type === "lost"),
        [],
      );
      await worker.stop();
    });
  });
}
