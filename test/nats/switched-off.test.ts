/** JetStream is switched off under processes that use it: the server says so, and they are told what that means. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Lateness } from "../kit/lateness.ts";
import { until } from "../kit/until.ts";
import { NatsDesk, now, refusal } from "./desk.ts";
import { ask } from "../../servers/nats-probe.ts";

const SOON_MS = 3_000;
/** A store that does not answer has five seconds, and one more. */
const HOLD_MS = 8_000;
const WITHIN_MS = 60_000;

test(
  "JetStream that is switched off is told of at once, with what was not done",
  { timeout: 60_000 },
  async (context) => {
    const { desk, server } = await NatsDesk.withServer(context);
    const baton = await desk.connect();
    const cars = baton.queue("cars");
    await cars.submit("car1", "before", { id: "before" });
    const file = join(server.folder, "nats.conf");
    const config = readFileSync(file, "utf8");
    const isServed = async (): Promise<boolean> =>
      await ask(server.port, "$JS.API.STREAM.INFO.baton").then(Boolean, () => false);

    using lateness = new Lateness();
    writeFileSync(file, config.replace(/jetstream \{[^}]*\}/, ""));
    process.kill(server.pid, "SIGHUP");
    await until(async () => !(await isServed()), "a server without JetStream", WITHIN_MS);

    for (const [what, call] of [
      ["an item for an idle key", () => cars.submit("car2", "new")],
      ["an item for a busy key", () => cars.submit("car1", "second")],
      ["an item with an id", () => cars.submit("car3", "new", { id: "after" })],
      ["a delayed item", () => cars.submit("car4", "new", { delay: "1h" })],
      ["an item for a queue that is new", () => baton.queue("trucks").submit("truck1", "new")],
    ] as const) {
      const begun = now();
      const { code, message } = await refusal(call());
      const late = now() - begun;
      assert.equal(code, "STORE_UNAVAILABLE", `${what}: ${message}`);
      assert.match(message, /switched off/, what);
      lateness.assertWithin(late, SOON_MS, `the refusal of ${what}`);
      context.diagnostic(`${what}: refused after ${late.toFixed(0)} ms`);
    }

    const begun = now();
    const held = await refusal(cars.hold("car9", { wait: "1s" }));
    // Nobody says that others have it.
    assert.match(String(held.code), /^(STORE_UNAVAILABLE|OUTCOME_UNKNOWN)$/, held.message);
    lateness.assertWithin(now() - begun, HOLD_MS, "the refusal of a hold");

    writeFileSync(file, config);
    process.kill(server.pid, "SIGHUP");
    await until(isServed, "a server with JetStream", WITHIN_MS);
    await cars.submit("car2", "again");
    const worked: string[] = [];
    const worker = cars.work(({ key, payload }) => void worked.push(`${key} ${String(payload)}`));
    await until(() => worked.length >= 2, "all items", WITHIN_MS);
    await worker.stop();
    // Nothing of what was refused was written.
    assert.deepEqual(worked.toSorted(), ["car1 before", "car2 again"]);
    assert.equal((await cars.status()).delayed, 0);
  },
);
