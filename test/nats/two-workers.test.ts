/** What two workers owe each other: nobody waits for the other's key, and nobody touches the other's work. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { Lateness } from "../kit/lateness.ts";
import { until } from "../kit/until.ts";
import { NatsDesk, now } from "./desk.ts";
import { stopOne } from "../sqlite/black-box/stop-one.ts";

const ROUNDS = 20;

test("while one car is worked on, another starts at once", { timeout: 60_000 }, async (context) => {
  const { desk } = await NatsDesk.withServer(context);
  const cars = (await desk.connect()).queue<"blocks" | "ends">("cars");
  const began = new Map<string, (at: number) => void>();
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  for (let index = 0; index < 2; index += 1) {
    const worker = (await desk.connect()).queue<"blocks" | "ends">("cars");
    worker.work(
      async ({ key, payload }) => {
        began.get(key)?.(now());
        if (payload === "blocks") await gate;
      },
      { concurrency: 1 },
    );
  }
  const start = async (key: string, payload: "blocks" | "ends"): Promise<number> => {
    const { promise, resolve } = Promise.withResolvers<number>();
    began.set(key, resolve);
    const from = now();
    await cars.submit(key, payload);
    return (await promise) - from;
  };
  using lateness = new Lateness();
  await start("car1", "ends");
  await start("car1", "blocks");
  const late: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    late.push(await start("car2", "ends"));
  }
  open();
  context.diagnostic(
    `car2 began ${median(late).toFixed(1)} ms after its submission, ${Math.max(...late).toFixed(1)} at most`,
  );
  lateness.assertWithin(median(late), 50, "the median start of car2");
});

test("the next item of a car begins as soon as the one before is settled", { timeout: 60_000 }, async (context) => {
  const { desk } = await NatsDesk.withServer(context);
  const baton = await desk.connect();
  const cars = baton.queue<number>("cars");
  using lateness = new Lateness();
  const times: { readonly began: number; readonly ended: number }[] = [];
  const all = Promise.withResolvers<void>();
  for (let index = 0; index < 2; index += 1) {
    const worker = (await desk.connect()).queue<number>("cars");
    worker.work(
      async () => {
        const began = now();
        await wait(5);
        times.push({ began, ended: now() });
        if (times.length === ROUNDS) all.resolve();
      },
      { concurrency: 1 },
    );
  }
  await cars.submitMany(Array.from({ length: ROUNDS }, (_, index) => ({ key: "car1", payload: index })));
  await all.promise;
  const gaps = times.slice(1).map(({ began }, index) => began - (times[index]?.ended ?? 0));
  assert.ok(
    gaps.every((ms) => ms > 0),
    "never two at a time",
  );
  context.diagnostic(`the next began ${median(gaps).toFixed(1)} ms later, ${Math.max(...gaps).toFixed(1)} at most`);
  lateness.assertWithin(median(gaps), 20, "the median gap");
});

test(
  "a worker that was stopped for two leases learns of the loss, is refused, and the other's work is untouched",
  { timeout: 60_000 },
  async (context) => {
    const { desk } = await NatsDesk.withServer(context);
    await stopOne(context, desk);
  },
);

test("an urgent item for a key that waits among 20,000 others starts next", { timeout: 120_000 }, async (context) => {
  const { desk } = await NatsDesk.withServer(context);
  const cars = (await desk.connect()).queue<null>("cars");
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const { promise: blocked, resolve: block } = Promise.withResolvers<void>();
  const order: string[] = [];
  const from = now();
  await cars.submit("gate", null, { level: "high" });
  const worker = cars.work(
    async ({ key, level }) => {
      order.push(`${key} ${level}`);
      if (key !== "gate") return;
      block();
      await gate;
    },
    { concurrency: 1 },
  );
  await blocked;
  await cars.submitMany(
    Array.from({ length: 20_000 }, (_, index) => ({ key: `car${index}`, payload: null, level: "low" })),
  );
  context.diagnostic(`20,000 items were submitted in ${(now() - from).toFixed(0)} ms`);
  await cars.submit("car15000", null, { level: "high" });
  open();
  await until(() => order.length >= 2, "the item after the gate");
  await worker.stop({ grace: 0 });
  assert.deepEqual(order.slice(0, 2), ["gate high", "car15000 high"]);
});

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Infinity;
}
