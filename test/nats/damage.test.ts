/** Somebody else publishes on Baton's subjects: damage to one key stays with that key, is named, and can be repaired. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { connect as connectNats, headers as newHeaders } from "@nats-io/transport-node";
import { tokenOf } from "../../src/engines/nats/key-token.ts";
import type { Baton, Queue } from "../../src/index.ts";
import { Desk as CommandDesk } from "../cli/baton-command.ts";
import { until } from "../kit/until.ts";
import { NatsDesk, refusal } from "./desk.ts";

const TIMEOUT = { timeout: 120_000 };
const KEY = tokenOf("bad");

/** What stands where the state of a key does. */
const FOREIGN: Readonly<Record<string, string>> = {
  "one letter": "x",
  "nothing at all": "",
  "JSON that was cut off": '{"k":"ready","n":"1","i":[{"u":"a","l":1,',
  "JSON of another shape": '{"k":"ready"}\n',
  "JSON that is no object": "17\n",
  "a state without its lease": '{"k":"running","i":[{"u":"a","l":1,"t":1,"p":["text/plain",0]}]}\n',
  "a payload that was cut off": '{"k":"ready","i":[{"u":"a","l":1,"t":1,"p":["text/plain",100]}]}\nabc',
};

class Stage {
  readonly desk: NatsDesk;
  readonly url: string;
  readonly baton: Baton;
  readonly publish: (subject: string, data: string, rollup?: boolean) => Promise<void>;

  private constructor(desk: NatsDesk, url: string, baton: Baton, publish: Stage["publish"]) {
    this.desk = desk;
    this.url = url;
    this.baton = baton;
    this.publish = publish;
  }

  static async open(context: TestContext): Promise<Stage> {
    const { desk, server } = await NatsDesk.withServer(context);
    const connection = await connectNats({ servers: server.url });
    context.after(() => connection.close());
    const publish = async (subject: string, data: string, rollup = false): Promise<void> => {
      const headers = newHeaders();
      if (rollup) headers.set("Nats-Rollup", "sub");
      const reply = await connection.request(subject, data, { headers, timeout: 5_000 });
      assert.doesNotMatch(reply.string(), /error/);
    };
    return new Stage(desk, server.url, await desk.connect(), publish);
  }

  get cars(): Queue<string> {
    return this.baton.queue<string>("cars", { history: "1h" });
  }

  /** Runs everything that can be run, until so many have. */
  async work(count: number): Promise<readonly string[]> {
    const baton = await this.desk.connect();
    const ran: string[] = [];
    const worker = baton.queue<string>("cars").work(({ key, payload }) => void ran.push(`${key} ${payload}`));
    await until(() => ran.length >= count, "items that are done");
    await worker.stop();
    await baton.close();
    return ran;
  }

  async errors(): Promise<readonly string[]> {
    return (await this.baton.check()).filter(({ severity }) => severity === "error").map(({ detail }) => detail);
  }

  async repair(): Promise<void> {
    for (const one of await this.baton.repairs()) await one.run();
  }
}

for (const [name, data] of Object.entries(FOREIGN)) {
  test(`where a key's state stands: ${name}`, TIMEOUT, async (context) => {
    const stage = await Stage.open(context);
    const { cars, baton } = stage;
    await cars.pause("bad");
    for (const number of [1, 2, 3]) await cars.submit("bad", `item ${number}`);
    await cars.submit("good", "item 4");
    await stage.publish(`baton.q.cars.s.run.0.${KEY}`, data);

    const [report] = await baton.queues();
    assert.match(report?.damage ?? "", /key "bad" is damaged/);
    const keys = await cars.keys();
    assert.deepEqual(
      keys.map(({ key, state, damage }) => [key, state, damage !== undefined]),
      [
        ["bad", "blocked", true],
        ["good", "ready", false],
      ],
    );
    const { code, message } = await refusal(cars.submit("bad", "item 5"));
    assert.equal(code, "STORE_CORRUPT", message);
    assert.match(message, /Key "bad" of queue cars is damaged.*baton doctor --repair/);
    assert.equal((await refusal(cars.resume("bad"))).code, "STORE_CORRUPT");
    assert.deepEqual(await stage.work(1), ["good item 4"]);
    const [error = ""] = await stage.errors();
    assert.match(
      error,
      /Key "bad" of queue cars cannot be read: message \d+ of stream baton-cars on baton\.q\.cars\.s\.run\.0\./,
    );

    await stage.repair();
    assert.deepEqual(await stage.errors(), []);
    assert.equal((await cars.keys())[0]?.paused, true, "as it stood before");
    await cars.resume("bad");
    assert.deepEqual(await stage.work(3), ["bad item 1", "bad item 2", "bad item 3"]);
  });
}

test(
  "the message that took the place of a key's state: its waiting items are handed out after the repair",
  TIMEOUT,
  async (context) => {
    const stage = await Stage.open(context);
    const { cars } = stage;
    await cars.pause("bad");
    await cars.submit("bad", "item 1");
    await cars.submit("bad", "item 2");
    await stage.publish(`baton.q.cars.s.run.0.${KEY}`, "x", true);
    await stage.repair();
    const waiting = (await cars.keys())[0]?.waiting ?? 0;
    assert.ok(waiting > 0, "what stood in line");
    const ran = await stage.work(waiting);
    assert.ok(ran.includes("bad item 2"), ran.join());
  },
);

test(
  "a key that is in work is settled after the repair, and nobody else gets it meanwhile",
  TIMEOUT,
  async (context) => {
    const stage = await Stage.open(context);
    const { cars } = stage;
    const [started, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const worker = cars.work(async () => {
      started.resolve();
      await goOn.promise;
    });
    const receipt = await cars.submit("bad", "item 1", { id: "one" });
    await started.promise;
    await stage.publish(`baton.q.cars.s.run.0.${KEY}`, "x");
    assert.equal((await cars.keys())[0]?.state, "blocked");
    goOn.resolve();
    await stage.repair();
    assert.equal((await receipt.outcome({ timeout: "20s" }))?.state, "done");
    await worker.stop();
    assert.deepEqual(await cars.keys(), []);
  },
);

test("in a line: the others go on, in their order, and nothing waits for it", TIMEOUT, async (context) => {
  const stage = await Stage.open(context);
  const { cars } = stage;
  await cars.pause("bad");
  for (let number = 0; number < 70; number += 1) await cars.submit("bad", `item ${number}`);
  for (const data of ["x", "{}\n", '{"u":1}\n']) await stage.publish(`baton.q.cars.w.1.${KEY}`, data);
  for (let number = 70; number < 80; number += 1) await cars.submit("bad", `item ${number}`);
  assert.equal((await stage.errors()).length, 3);
  await cars.resume("bad");
  const expected = Array.from({ length: 80 }, (_, number) => `bad item ${number}`);
  assert.deepEqual(await stage.work(80), expected);
  await stage.repair();
  assert.deepEqual(await stage.errors(), []);
  assert.deepEqual(await cars.keys(), []);
});

test("where a ready key stands: a worker removes it, and the key is handed out", TIMEOUT, async (context) => {
  const stage = await Stage.open(context);
  await stage.cars.submit("bad", "item 1");
  await stage.cars.submit("good", "item 2");
  await stage.publish(`baton.q.cars.s.1.0.${KEY}`, "x");
  assert.equal((await stage.errors()).length, 1);
  assert.deepEqual((await stage.work(1)).slice(0, 1), ["good item 2"]);
  assert.deepEqual(await stage.work(1), ["bad item 1"]);
  assert.deepEqual(await stage.errors(), []);
});

test(
  "where receipts, dead letters, delays, signs of life, locks and the queue's own record stand",
  TIMEOUT,
  async (context) => {
    const stage = await Stage.open(context);
    const { cars, baton } = stage;
    await cars.submit("k", "item 1", { id: "one" });
    await cars.submit("k", "item 2", { id: "two" });
    const lock = await baton.lock("nightly");
    const [one] = [tokenOf("one")];
    const places = [
      `baton.c.id.cars.${one}`,
      `baton.c.dead.cars.${tokenOf("three")}`,
      `baton.c.later.cars.${KEY}.b1`,
      `baton.c.due.cars.${KEY}`,
      "baton.c.session.cars.somebody",
      `baton.c.cell.lock.${tokenOf("weekly")}`,
    ];
    for (const place of places) await stage.publish(place, "x");
    await stage.publish("baton.q.cars.what.is.this", "x");
    assert.equal((await stage.errors()).length, places.length);

    assert.equal((await refusal(cars.submit("k", "again", { id: "one" }))).code, "STORE_CORRUPT");
    assert.equal((await cars.submit("k", "again", { id: "two" })).duplicate, true);
    assert.deepEqual(await cars.dead(), []);
    assert.deepEqual(
      (await baton.locks()).map(({ name, damage }) => [name, damage !== undefined]),
      [
        ["nightly", false],
        ["weekly", true],
      ],
    );
    assert.equal((await refusal(baton.lock("weekly", { wait: 0 }))).code, "STORE_CORRUPT");
    await lock.release();

    await stage.publish("baton.c.queue.cars", "x");
    const other = await stage.desk.connect();
    assert.match((await other.queues())[0]?.damage ?? "", /^The record of queue cars is damaged/);
    assert.equal((await refusal(other.queue("cars").keys())).code, "STORE_CORRUPT");
    await stage.repair();
    assert.deepEqual(await stage.errors(), []);
    assert.equal((await cars.submit("k", "again", { id: "one" })).duplicate, true, "as it stood before");
    await (await baton.lock("weekly", { wait: 0 })).release();
    assert.deepEqual(await stage.work(2), ["k item 1", "k item 2"]);
  },
);

test("the commands name it, and doctor --repair says what it does before it does it", TIMEOUT, async (context) => {
  const stage = await Stage.open(context);
  await stage.cars.pause("bad");
  await stage.cars.submit("bad", "item 1");
  await stage.publish(`baton.q.cars.s.run.0.${KEY}`, "x");
  const command = new CommandDesk(context, stage.url);
  const status = await command.run(["status"]);
  assert.equal(status.code, 0, status.stderr);
  assert.match(status.stdout, /cars: key "bad" is damaged/);
  const keys = await command.run(["keys", "cars"]);
  assert.match(keys.stdout, /bad +damaged/);
  const doctor = await command.run(["doctor"]);
  assert.equal(doctor.code, 1);
  assert.match(doctor.stdout, /error +queue cars: Key "bad" of queue cars cannot be read: message \d+ .*1 byte, "x"/);
  const json = await command.run(["doctor", "--repair", "--json"]);
  assert.equal(json.code, 0, json.stdout + json.stderr);
  const [first = ""] = json.stdout.split("\n");
  assert.partialDeepStrictEqual(JSON.parse(first), { repair: { subject: "queue cars", content: "eA==" } });
  const again = await command.run(["doctor", "--repair"]);
  assert.match(again.stdout, /nothing that can be repaired/);
});
