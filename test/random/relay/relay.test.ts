/**
 * Random relays on random queues, in virtual time: whatever fails, every message ends once, in order, with no more at
 * a time than may be, and afterwards the relay is as good as new.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, test } from "node:test";
import { Worker } from "node:worker_threads";
import { again, Seeds, seedTimeoutMs } from "../../kit/seeds.ts";

describe("a relay on random queues", { timeout: seedTimeoutMs(60_000) }, () => {
  test("keeps what it promises", async (context) => {
    const thread = new Worker(join(import.meta.dirname, "thread.ts"));
    context.after(() => thread.terminate());
    const died = new Promise<unknown>((resolve) => thread.once("error", resolve));
    const seeds = new Seeds({ seeds: 120, longestMs: 20_000 });
    for (const seed of seeds) {
      const answer = new Promise<unknown>((resolve) => thread.once("message", resolve));
      thread.postMessage(seed);
      const problem = await Promise.race([answer, died]);
      if (problem !== "") assert.fail(`${String(problem)}\n${again(seed)}`);
    }
    seeds.tell(context, "relays on random queues");
  });
});
