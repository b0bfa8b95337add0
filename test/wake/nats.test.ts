/** What a NATS server may forbid, and what is the application's own. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { connect } from "@nats-io/transport-node";
import { ask } from "../../servers/nats-probe.ts";
import { startNatsServer } from "../../servers/nats-server.ts";
import { natsWakeOn, openNatsWakeUrl } from "../../src/engines/nats/wake.ts";
import type { WakeAdapter } from "../../src/wake/port.ts";
import { until } from "../kit/until.ts";
import { Wake } from "../../src/wake/wake.ts";

describe("wakes over NATS", { concurrency: 4, timeout: 60_000 }, () => {
  test("keep budgets in a bucket that forgets after a minute", async () => {
    await using server = await startNatsServer();
    const adapter = openNatsWakeUrl(server.url);
    await adapter.hints?.add("baton.cars", 3);
    const found = await ask(server.port, "$JS.API.STREAM.INFO.KV_baton-wake");
    await adapter.close();
    assert.partialDeepStrictEqual(found, {
      config: { max_age: 60e9, max_msgs_per_subject: 1, storage: "memory", subjects: ["$KV.baton-wake.>"] },
    });
  });

  test("do without hints where no bucket may be made", async () => {
    const permissions = '{ publish: ["baton.>"], subscribe: ["baton.>", "_INBOX.>"] }';
    const user = `{ user: "app", password: "secret", permissions: ${permissions} }`;
    await using server = await startNatsServer({ config: `authorization { users: [ ${user} ] }` });
    await expectEverybodyWakes(() => openNatsWakeUrl(`nats://app:secret@127.0.0.1:${server.port}`));
  });

  test("say it when a subscription is forbidden, and fail nobody", async () => {
    const user = '{ user: "app", password: "secret", permissions: { publish: [">"], subscribe: ["_INBOX.>"] } }';
    await using server = await startNatsServer({ config: `authorization { users: [ ${user} ] }` });
    const wake = new Wake(openNatsWakeUrl(`nats://app:secret@127.0.0.1:${server.port}`));
    wake.onWork("cars", { idle: () => 1, wake: () => undefined, stir: () => assert.fail("nobody listens") });
    await until(() => wake.report().trouble, "the trouble to be told of");
    assert.match(wake.report().trouble ?? "", /permission/i);
    await wake.close();
  });

  test("leave the application's connection open", async () => {
    await using server = await startNatsServer();
    const connection = await connect({ servers: server.url });
    await expectEverybodyHears(() => natsWakeOn(connection));
    assert.equal(connection.isClosed(), false, "the connection of the application stays open");
    await connection.close();
  });
});

async function expectEverybodyWakes(open: () => WakeAdapter): Promise<void> {
  const [sender, ...others] = [new Wake(open()), new Wake(open()), new Wake(open())];
  const woken = others.map(() => 0);
  for (const [index, wake] of others.entries()) {
    wake.onWork("cars", {
      idle: () => 5,
      wake: (count) => (woken[index] = (woken[index] ?? 0) + count),
      stir: () => (woken[index] = 5),
    });
  }
  await until(() => woken.every((count) => count === 5), "five wakes of everybody");
  sender.work("cars", 2);
  await until(() => woken.every((count) => count === 7), "two more wakes of everybody");
  await Promise.all([sender, ...others].map((wake) => wake.close()));
}

async function expectEverybodyHears(open: () => WakeAdapter): Promise<void> {
  const [sender, other] = [new Wake(open()), new Wake(open())];
  const told: string[] = [];
  other.onEnded("cars", (ids) => told.push(...(ids ?? ["look"])));
  await until(() => told.includes("look"), "the word to look");
  sender.ended("cars", ["one"]);
  await until(() => told.includes("one"), "the end of the item");
  await Promise.all([sender.close(), other.close()]);
}
