/** A stream without room: what comes is refused and says why, what was accepted stays, and work goes on when there is room again. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ask } from "../../servers/nats-probe.ts";
import { BatonError } from "../../src/index.ts";
import { NatsDesk, streamInfo, untilPulled } from "./desk.ts";

const STREAM = "baton-cars";
const MORE_THAN_FITS = 200;

test("a full stream refuses what comes, keeps what was accepted, and works again when there is room", async (context) => {
  const { desk, server } = await NatsDesk.withServer(context);
  const cars = (await desk.connect()).queue<string>("cars");
  await cars.levels();
  await setLimit(server.port, 20_000);

  let accepted = 0;
  await assert.rejects(
    async () => {
      for (; accepted < MORE_THAN_FITS; accepted += 1) await cars.submit(`car${accepted}`, "x".repeat(500));
    },
    (error) => error instanceof BatonError && error.code === "STORE_FULL" && error.message.includes("more room"),
  );
  assert.ok(accepted > 5, `only ${accepted} were accepted`);

  const all = Promise.withResolvers<void>();
  const done = new Set<string>();
  cars.work((item) => {
    done.add(item.key);
    if (done.size === accepted) all.resolve();
  });
  await setLimit(server.port, -1);
  await all.promise;
});

test("where a worker waits, a refusal leaves nothing behind that goes on", { timeout: 30_000 }, async (context) => {
  const { desk, server } = await NatsDesk.withServer(context);
  const baton = await desk.connect();
  const cars = baton.queue<string>("cars");
  const first = Promise.withResolvers<void>();
  cars.work(() => first.resolve());
  await cars.submit("first", "x");
  await first.promise;
  await untilPulled(server.port);
  await setLimit(server.port, 1);
  for (let index = 0; index < 10; index += 1)
    await assert.rejects(cars.submit(`car${index}`, "x"), { code: "STORE_FULL" });
  // It waits for what this process does in the background; what goes on for ever hits the limit of this test.
  assert.equal((await baton.queues())[0]?.queue, "cars");
});

async function setLimit(port: number, bytes: number): Promise<void> {
  const { config } = await streamInfo(port, STREAM);
  const { error } = (await ask(port, `$JS.API.STREAM.UPDATE.${STREAM}`, { ...config, max_bytes: bytes })) as {
    readonly error?: unknown;
  };
  assert.equal(error, undefined);
}
