/** Wakes that are lost, and a carrier that goes away: work goes on, slower at most. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { freePort } from "../../servers/free-port.ts";
import { startNatsServer } from "../../servers/nats-server.ts";
import type { WakeAdapter } from "../../src/wake/port.ts";
import { Desk } from "../sqlite/desk.ts";

/** Takes everything and delivers nothing. */
const VOID: WakeAdapter = {
  name: "void",
  hints: { add: async () => undefined, take: async () => "empty" },
  publish: async () => undefined,
  listen: async () => async () => undefined,
  close: async () => undefined,
};

describe("a SQLite store that is woken from elsewhere", { concurrency: 4, timeout: 60_000 }, () => {
  test("loses nothing when every wake is lost", async (context) => {
    const desk = new Desk(context);
    const [submitter, other] = [await desk.connect({ wake: VOID }), await desk.connect({ wake: VOID })];
    const worker = other.queue("cars").work(({ key }) => key);
    const receipt = await submitter.queue("cars", { history: "1h" }).submit("car1", null);
    const outcome = await receipt.outcome();
    assert.equal(outcome?.state, "done");
    await worker.stop();
  });

  test("goes on while its carrier is away, and is woken again when it is back", async (context) => {
    const desk = new Desk(context);
    await using server = await startNatsServer();
    const [submitter, other] = [
      await desk.connect({ wake: server.url }),
      await desk.connect({ wake: `${server.url}?prefix=baton` }),
    ];
    const worker = other.queue("cars").work(({ key }) => key);
    const cars = submitter.queue("cars", { history: "1h" });
    assert.equal((await (await cars.submit("before", null)).outcome())?.state, "done");
    await server.kill();
    const during = await Promise.all(Array.from({ length: 20 }, (_, number) => cars.submit(`during-${number}`, null)));
    const outcomes = await Promise.all(during.map((receipt) => receipt.outcome()));
    assert.ok(outcomes.every((outcome) => outcome?.state === "done"));
    await server.restart();
    assert.equal((await (await cars.submit("after", null)).outcome())?.state, "done");
    await worker.stop();
  });

  test("can be opened and closed while its carrier is away", async (context) => {
    const desk = new Desk(context);
    const port = await freePort();
    const baton = await desk.connect({ wake: `nats://127.0.0.1:${port}`, wakePrefix: "my.app" });
    const cars = baton.queue("cars", { history: "1h" });
    const worker = cars.work(({ key }) => key);
    assert.equal((await (await cars.submit("car1", null)).outcome())?.state, "done");
    await worker.stop();
    await baton.close();
  });

  test("says what is wrong with a wake that it cannot have", async (context) => {
    const desk = new Desk(context);
    const refused = { code: "INVALID_INPUT" };
    await assert.rejects(desk.connect({ wake: "carrier-pigeon://x" }), refused);
    await assert.rejects(desk.connect({ wake: "memory:", wakePrefix: "a b" }), refused);
    await assert.rejects(desk.connect({ wake: "nats://x?no-such-parameter=1" }), refused);
  });
});
