import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { type BatonEvent, describeWarning } from "../../src/index.ts";
import { Lateness } from "../kit/lateness.ts";
import { until } from "../kit/until.ts";
import { now, PostgresDesk } from "./desk.ts";

const OUTAGE_MS = 10_000;
const SLOTS = 64;

test("an outage of ten seconds under 64 busy slots is told in a handful of warnings, and work goes on within a second or so", async (context) => {
  const { desk, server } = await PostgresDesk.withServer(context);
  const warnings: { readonly at: number; readonly text: string }[] = [];
  const baton = await desk.connect({
    onEvent: (event: BatonEvent) => {
      const text = describeWarning(event);
      if (text !== undefined) warnings.push({ at: now(), text });
    },
  });
  const jobs = baton.queue<number>("jobs", { history: "1h" });
  let ended = 0;
  let began: number | undefined;
  const worker = jobs.work(
    async () => {
      began ??= now();
      await wait(300);
      ended += 1;
    },
    { concurrency: SLOTS },
  );
  await worker.ready;
  const items = Array.from({ length: 6 * SLOTS }, (_, index) => ({ key: `key${index}`, payload: index }));
  await jobs.submitMany(items);
  await until(() => ended >= SLOTS, "that handlers have ended");

  await server.kill();
  await wait(OUTAGE_MS);
  began = undefined;
  using lateness = new Lateness();
  await server.restart();
  const from = now();
  const first = await until(() => began, "that a handler begins");
  context.diagnostic(`a handler began ${(first - from).toFixed(0)} ms after the server accepted connections`);
  await until(async () => {
    const { waiting, running, delayed, dead } = await jobs.status();
    return waiting + running + delayed + dead === 0;
  }, "that all is done");
  await until(async () => warnings.some(({ text }) => text.includes("is over")), "that it is over");
  context.diagnostic(`${warnings.length} warnings:\n${warnings.map(({ text }) => text).join("\n")}`);
  assert.ok(warnings.length <= 5, `${warnings.length} warnings`);
  lateness.assertWithin(first - from, 3_000, "the start of a handler after the outage");
});

test("a worker whose server is away when it begins is ready as soon as the server is there", async (context) => {
  const { desk, server } = await PostgresDesk.withServer(context);
  const events: BatonEvent[] = [];
  const baton = await desk.connect({ onEvent: (event) => events.push(event) });
  await server.kill();
  const worker = baton.queue("jobs").work(() => undefined);
  await until(() => events.length > 0, "that it tells");
  await wait(1_500);
  await server.restart();
  await worker.ready;
  await (await baton.queue("jobs").submit("key", 1, { history: "1m" })).outcome({ timeout: "30s" });
  assert.equal(events.filter(({ type }) => type === "trouble").length, 1);
});
