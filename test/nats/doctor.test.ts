/** What `baton doctor` says of a store on NATS that somebody has laid hands on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ask } from "../../servers/nats-probe.ts";
import { connect } from "../../src/index.ts";
import { Desk as CommandDesk } from "../cli/baton-command.ts";
import { NatsDesk, refusal } from "./desk.ts";

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

test("consumers whose settings differ are reported, refused if Baton cannot work with them, and left as they are", async (context) => {
  const { desk, server } = await NatsDesk.withServer(context);
  const baton = await desk.connect();
  await baton.queue("cars").levels();
  const change = async (name: string, more: object): Promise<void> => {
    const { config } = (await ask(server.port, `$JS.API.CONSUMER.INFO.baton-cars.${name}`)) as { config: object };
    const changed = { stream_name: "baton-cars", config: { ...config, ...more } };
    const answer = (await ask(server.port, `$JS.API.CONSUMER.DURABLE.CREATE.baton-cars.${name}`, changed)) as object;
    assert.ok(!("error" in answer), JSON.stringify(answer));
  };
  await change("ready-0", { ack_wait: 60e9, max_ack_pending: 10 });
  await change("ready-1", { max_deliver: 3 });

  const found = (await baton.check()).filter(({ subject }) => subject === "queue cars");
  assert.deepEqual(
    found.map(({ severity, detail }) => `${severity}: ${detail}`),
    [
      "warning: Its consumer ready-0 of stream baton-cars is not as Baton makes it: ack_wait is 60000000000, not 1000000000; max_ack_pending is 10, not 50000. Work may wait longer, or stop at a limit.",
      "error: Its consumer ready-1 of stream baton-cars is not as Baton needs it: max_deliver is 3, not -1.",
    ],
  );

  const other = await desk.connect();
  const { code, message } = await refusal(other.queue("cars").submit("car1", null));
  assert.equal(code, "STORE_UNAVAILABLE");
  assert.match(
    message,
    /consumer ready-1 of stream baton-cars exists, but was not made for Baton: max_deliver is 3.*Nothing was changed/,
  );
  const after = (await ask(server.port, "$JS.API.CONSUMER.INFO.baton-cars.ready-1")) as {
    config: { max_deliver: number };
  };
  assert.equal(after.config.max_deliver, 3);

  await ask(server.port, "$JS.API.CONSUMER.DELETE.baton-cars.ready-0");
  await ask(server.port, "$JS.API.CONSUMER.DELETE.baton-cars.ready-1");
  await other.queue("cars").submit("car1", null);
  assert.ok((await baton.check()).every(({ subject }) => subject !== "queue cars"));
});

test("a worker that starts on a single replica says once what a power loss may take; the library says it when asked", async (context) => {
  const { desk, server } = await NatsDesk.withServer(context);
  const baton = await desk.connect();
  await baton.queue("cars").levels();
  assert.match(baton.caution?.detail ?? "", /^One replica: .*power loss/);
  const command = new CommandDesk(context, server.url);
  const work = ["work", "cars", "--until-empty", "--", "true"];
  const { stderr } = await command.run(work);
  assert.equal(stderr.match(/One replica: .*sync_interval: always/g)?.length, 1, stderr);
  assert.equal((await command.run(["work", "--quiet", ...work.slice(1)])).stderr, "");
});
