import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { Random } from "../../test/kit/random.ts";
import { again, Seeds } from "../../test/kit/seeds.ts";
import { Backoff } from "./backoff.ts";

suite("Growing pauses", () => {
  test("double up to the longest, spread over their upper half, and begin anew after each success", (context) => {
    const seeds = new Seeds({ seeds: 200, longestMs: 1_000 });
    for (const seed of seeds) {
      const random = new Random(seed);
      const firstMs = random.between(1, 100);
      const longestMs = firstMs * random.between(1, 40);
      const backoff = new Backoff(() => random.next(), firstMs, longestMs);
      let expectedMs = firstMs;
      for (let step = 0; step < 50; step += 1) {
        if (random.chance(0.15)) {
          backoff.reset();
          expectedMs = firstMs;
        }
        const ms = backoff.next();
        const range = `${expectedMs / 2} to ${expectedMs} ms`;
        assert.ok(ms >= expectedMs / 2 && ms <= expectedMs, `a pause of ${ms} ms for ${range}; ${again(seed)}`);
        expectedMs = Math.min(expectedMs * 2, longestMs);
      }
    }
    seeds.tell(context, "growing pauses");
  });
});
