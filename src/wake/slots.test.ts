/** How many of those who sleep are woken when more work is told of while a budget is being asked. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { aftermath, ManualClock } from "../../test/manual-clock.ts";
import { Hints } from "./hints.ts";
import type { HintResult } from "./port.ts";
import { Slots } from "./slots.ts";

/** Slots before a budget that answers when the test says so. */
function stage(): {
  readonly slots: Slots;
  readonly woken: () => number;
  readonly answer: (result: HintResult) => Promise<void>;
} {
  const asked: PromiseWithResolvers<HintResult>[] = [];
  const store = {
    add: () => Promise.resolve(),
    take: () => {
      const answer = Promise.withResolvers<HintResult>();
      asked.push(answer);
      return answer.promise;
    },
  };
  const hints = new Hints(
    () => store,
    new ManualClock(),
    () => undefined,
  );
  let asleep = 10;
  const wake = (count: number): void => void (asleep -= count);
  return {
    slots: new Slots("cars", hints, { idle: () => asleep, wake, stir: () => wake(asleep) }),
    woken: () => 10 - asleep,
    answer: async (result) => {
      const next = asked.shift();
      assert.ok(next, "the budget is asked");
      next.resolve(result);
      await aftermath();
    },
  };
}

test("work that is told of while the budget is asked comes on top", async () => {
  const { slots, woken, answer } = stage();
  slots.offer(2);
  slots.offer(1);
  for (let count = 1; count <= 3; count += 1) {
    await answer("taken");
    assert.equal(woken(), count);
  }
  await assert.rejects(answer("taken"), /the budget is asked/);
});

test("an empty budget ends what was offered before it was asked, and not what came meanwhile", async () => {
  const { slots, woken, answer } = stage();
  slots.offer(2);
  slots.offer(1);
  await answer("empty");
  await answer("taken");
  assert.equal(woken(), 1);
  await assert.rejects(answer("taken"), /the budget is asked/);
});
