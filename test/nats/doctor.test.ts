/** What `baton doctor` says of a store on NATS that somebody has laid hands on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ask } from "../../servers/nats-probe.ts";
import { connect } from "../../src/index.ts";
import { NatsDesk } from "./desk.ts";

test("settings that differ are reported for each stream, and nothing is changed", async (context) => {
  const { desk, server } = await NatsDesk.withServer(context);
  const baton = await desk.connect();
  await baton.queue("cars").levels();
  const other = await connect(`${server.url}?storage=memory`);
  context.after(() => other.close());
  await other.queue("bikes").levels();

  const found = (await baton.check()).filter(({ subject }) => subject === "settings");
  assert.deepEqual(
    found.map(({ severity, detail }) => [severity, detail.split(";")[0]]),
    [["warning", "Stream baton-bikes has 1 replica in memory storage"]],
  );
  const asked = (await other.check()).filter(({ subject }) => subject === "settings");
  assert.deepEqual(
    asked.map(({ detail }) => /^Stream (\S+) /.exec(detail)?.[1]),
    ["baton", "baton-cars"],
  );
});

test("consumers and streams that are gone are named, with what it means", async (context) => {
  const { desk, server } = await NatsDesk.withServer(context);
  const baton = await desk.connect();
  await baton.queue("cars").levels();
  await baton.queue("bikes").levels();
  assert.ok((await baton.check()).every(({ severity }) => severity !== "error"));

  await ask(server.port, "$JS.API.CONSUMER.DELETE.baton-cars.ready-1");
  await ask(server.port, "$JS.API.CONSUMER.DELETE.baton.due-cars");
  await ask(server.port, "$JS.API.STREAM.DELETE.baton-bikes");
  const errors = (await baton.check()).filter(({ severity }) => severity === "error");
  assert.deepEqual(errors.map(({ subject, detail }) => `${subject}: ${detail}`).toSorted(), [
    "queue bikes: Its stream baton-bikes is gone, and its waiting items with it.",
    "queue cars: Its consumer due-cars of stream baton is gone: delayed items and retries do not come due.",
    "queue cars: Its consumer ready-1 of stream baton-cars is gone: items of that level are not handed out.",
  ]);
});
