/** Keys with more items than they can carry: most of them stand in line, and are taken out of it several at a time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../src/index.ts";
import { leftInStream, NatsDesk } from "./desk.ts";

const KEYS = ["a", "b", "c"];
const ITEMS = 300;
/** Behind what a key carries. */
const DROPPED = [120, 121, 150, 299];

test("a long line is worked off in order, without what was cancelled in it", { timeout: 60_000 }, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  await using baton = await connect(server.url);
  await using other = await connect(server.url);
  const queue = baton.queue<number>("cars");
  const ids = new Map<string, string>();
  // In turns, so that the lines lie between each other in the store.
  for (let number = 0; number < ITEMS; number += 50) {
    const items = Array.from({ length: 50 }, (_, index) =>
      KEYS.map((key) => ({ key, payload: number + index, level: isUrgent(number + index) ? "high" : "normal" })),
    ).flat();
    const accepted = await queue.submitMany(items);
    for (const [index, { key, payload }] of items.entries()) ids.set(`${key} ${payload}`, accepted[index]?.id ?? "");
  }
  for (const number of DROPPED) {
    for (const key of KEYS) {
      const id = ids.get(`${key} ${number}`);
      assert.ok(id !== undefined);
      assert.equal(await queue.cancel(id), "cancelled");
    }
  }
  const ran = new Map(KEYS.map((key) => [key, [] as number[]]));
  const expected = KEYS.length * (ITEMS - DROPPED.length);
  const all = Promise.withResolvers<void>();
  let count = 0;
  const workers = [baton, other].map((one) =>
    one.queue<number>("cars").work(
      ({ key, payload }) => {
        ran.get(key)?.push(payload);
        count += 1;
        if (count === expected) all.resolve();
      },
      { concurrency: 2 },
    ),
  );
  await all.promise;
  await Promise.all(workers.map((worker) => worker.stop()));
  const numbers = Array.from({ length: ITEMS }, (_, number) => number).filter((number) => !DROPPED.includes(number));
  for (const key of KEYS) {
    const order = ran.get(key) ?? [];
    assert.equal(new Set(order).size, order.length, "Every item once");
    for (const urgent of [true, false])
      assert.deepEqual(
        order.filter((number) => isUrgent(number) === urgent),
        numbers.filter((number) => isUrgent(number) === urgent),
      );
  }
  assert.equal(await leftInStream(server.port, "baton-cars", 20_000), 0);
});

test(
  "what joins a line while its last items are taken out of it is worked off, in order",
  { timeout: 60_000 },
  async (context) => {
    const { server } = await NatsDesk.withServer(context);
    await using baton = await connect(server.url);
    await using other = await connect(server.url);
    const queue = baton.queue<number>("cars");
    const last = 400;
    let submitted = 100;
    await queue.submitMany(Array.from({ length: submitted }, (_, number) => ({ key: "a", payload: number })));
    // By two, one of whom has not seen how the key stands: as the line ends, again and again.
    let joining = Promise.resolve<unknown>(undefined);
    const join = (by: typeof baton): void => {
      const payload = submitted;
      submitted += 1;
      joining = joining.then(() => by.queue<number>("cars").submit("a", payload));
    };
    const ran: number[] = [];
    const all = Promise.withResolvers<void>();
    const worker = queue.work(
      async ({ payload }) => {
        ran.push(payload);
        // Fewer come than are done, so that the line ends; and then some at once.
        if (payload % 2 === 0 && submitted < last) join(payload % 4 === 0 ? baton : other);
        if (payload === submitted - 1 && submitted < last) {
          for (let more = Math.min(80, last - submitted); more > 0; more -= 1) join(other);
          await joining;
        }
        if (ran.length === last) all.resolve();
      },
      { concurrency: 4 },
    );
    await all.promise;
    await joining;
    await worker.stop();
    assert.deepEqual(
      ran,
      Array.from({ length: last }, (_, number) => number),
    );
    assert.equal(await leftInStream(server.port, "baton-cars", 20_000), 0);
  },
);

function isUrgent(number: number): boolean {
  return number % 25 === 7;
}
