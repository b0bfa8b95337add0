/** Wakes over LISTEN and NOTIFY. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { startPostgres } from "../../servers/postgres.ts";
import { postgresWake } from "../../src/engines/postgres/index.ts";
import { until } from "../kit/until.ts";
import { startStandby } from "./standby.ts";
import { started } from "../started.ts";

const running = started(() => startPostgres());

test("what is published is heard, also after the connection was killed", { timeout: 60_000 }, async () => {
  const sender = postgresWake(running().url);
  const receiver = postgresWake(running().url);
  const heard: string[] = [];
  let missed = 0;
  const stop = await receiver.listen(
    "baton.test",
    (text) => heard.push(text),
    () => (missed += 1),
  );
  await sender.publish([
    { channel: "baton.test", text: "one" },
    { channel: "baton.other", text: "nobody" },
    { channel: "baton.test", text: "two 🚗" },
  ]);
  await until(() => heard.length === 2, "two texts");
  assert.deepEqual(heard, ["one", "two 🚗"]);
  await running().query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'");
  await until(() => missed > 0, "the word that some may have been missed");
  await sender.publish([{ channel: "baton.test", text: "three" }]);
  await until(() => heard.length === 3, "a third text");
  await stop();
  await sender.publish([{ channel: "baton.test", text: "four" }]);
  await Promise.all([sender.close(), receiver.close()]);
  assert.equal(heard.length, 3);
});

test("whoever could not listen is not heard for twice when he comes again", { timeout: 60_000 }, async () => {
  const other = await startPostgres();
  await other.kill();
  const wake = postgresWake(other.url);
  let heard = 0;
  const listen = (): Promise<() => Promise<void>> =>
    wake.listen(
      "baton.test",
      () => (heard += 1),
      () => undefined,
    );
  await assert.rejects(listen());
  await assert.rejects(listen());
  await other.restart();
  const stop = await listen();
  await wake.publish([{ channel: "baton.test", text: "x" }]);
  await until(() => heard > 0, "the text");
  assert.equal(heard, 1);
  await stop();
  await wake.close();
  await other.stop();
});

test("statements do not overlap on the connection", { timeout: 60_000 }, async (context) => {
  const warnings: string[] = [];
  const warn = ({ message }: Error): number => warnings.push(message);
  process.on("warning", warn);
  context.after(() => process.off("warning", warn));
  const wake = postgresWake(running().url);
  const ignore = (): void => undefined;
  await Promise.all([
    ...["a", "b", "c"].map((channel) => wake.listen(channel, ignore, ignore)),
    wake.publish([{ channel: "a", text: "x" }]),
  ]);
  await wake.close();
  await new Promise(setImmediate);
  assert.deepEqual(warnings, []);
});

test("a server on which nobody can listen is left with no connection open", { timeout: 60_000 }, async (context) => {
  const standby = await startStandby(async () => undefined);
  context.after(() => standby.stop());
  const wake = postgresWake(standby.url);
  const ignore = (): void => undefined;
  for (let tries = 0; tries < 5; tries += 1)
    await assert.rejects(wake.listen("baton.test", ignore, ignore), { code: "25006" });
  const open = "SELECT FROM pg_stat_activity WHERE application_name = 'baton'";
  const none = async (): Promise<true | undefined> => ((await standby.query(open)).rowCount === 0 ? true : undefined);
  await until(none, "an end of the connections");
  await wake.close();
  await until(none, "an end of the connections");
});
