/**
 * Whoever does not wait for work any more is in nobody's way, however long his connection stays open, and even if his process stands still: each
 * item that is sent to one comes again to somebody else only after a second.
 */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { NatsDesk, now } from "./desk.ts";

const IDLE = 4;
const ITEMS = 10;
/** They take 2 to 20; one that was sent to a process that does not want it comes again after a second. */
const AGAIN_MS = 1_000;
/** A busy machine can make one so late. */
const MOST_LATE = 2;
const WAIT_MS = 1_500;

test("items start at once beside processes whose worker was stopped", { timeout: 60_000 }, async (context) => {
  await startBeside(context, "stopped");
});

test("items start at once beside processes that gave up waiting", { timeout: 60_000 }, async (context) => {
  await startBeside(context, "gave up");
});

test(
  "items start at once beside processes that froze and would have given up since",
  { timeout: 60_000 },
  async (context) => {
    await startBeside(context, "waits");
  },
);

async function startBeside(context: TestContext, how: string): Promise<void> {
  const { desk } = await NatsDesk.withServer(context);
  const baton = await desk.connect();
  const cars = baton.queue<number>("cars");
  await cars.levels();
  const idle = Array.from({ length: IDLE }, () =>
    desk.start("../../nats/children/interested", desk.url, how, String(WAIT_MS)),
  );
  await Promise.all(idle.map((child) => child.next()));
  // So that nothing they still do covers up what they left behind.
  for (const child of idle) child.process.kill("SIGSTOP");
  if (how === "waits") await wait(WAIT_MS);
  const started: number[] = [];
  let tell: () => void = () => undefined;
  const other = await desk.connect();
  const worker = other.queue<number>("cars").work(({ payload }) => {
    started.push(now() - payload);
    tell();
  });
  for (let item = 0; item < ITEMS; item += 1) {
    const next = new Promise<void>((resolve) => (tell = resolve));
    await cars.submit(`car${item}`, now());
    await next;
  }
  const late = started.map((ms) => Math.round(ms));
  context.diagnostic(`started after ${late.join(", ")} ms`);
  assert.ok(
    started.filter((ms) => ms >= AGAIN_MS).length <= MOST_LATE,
    `Items were sent to processes that do not want them, and started after ${late.join(", ")} ms.`,
  );
  await worker.stop();
}
