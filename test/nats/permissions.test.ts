/** Refusals that must come soon: once, both took longer than a minute. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startNatsServer } from "../../servers/nats-server.ts";
import { type NatsOptions, natsEngine } from "../../src/engines/nats/index.ts";
import { connect } from "../../src/index.ts";
import { Lateness } from "../kit/lateness.ts";
import { refusal } from "./desk.ts";

const SOON_MS = 5_000;

describe("an account that may not do everything says what is missing, soon", () => {
  test("streams may not be made", { timeout: 60_000 }, async () => {
    const message = await refusedTo('publish: { allow: [">"], deny: ["$JS.API.STREAM.CREATE.>"] }');
    assert.match(message, /[Pp]ermission/);
    assert.match(message, /\$JS\.API\.STREAM\.CREATE\.baton/);
  });

  test("replies may not be heard", { timeout: 60_000 }, async () => {
    const message = await refusedTo('subscribe: { deny: ["_INBOX.>"] }');
    assert.match(message, /[Pp]ermission/);
    assert.match(message, /_INBOX/);
  });
});

/** What a user with these permissions is told, which must be soon. */
async function refusedTo(permissions: string): Promise<string> {
  const user = `{ user: "ada", password: "x", permissions: { ${permissions} } }`;
  await using server = await startNatsServer({ config: `authorization { users: [ ${user} ] }` });
  using lateness = new Lateness();
  const from = performance.now();
  const { code, message } = await refusal(
    useOnce({ servers: [`127.0.0.1:${server.port}`], user: "ada", password: "x" }),
  );
  const took = performance.now() - from;
  lateness.assertWithin(took, SOON_MS, `saying ${String(code)}: ${message}`);
  assert.equal(code, "STORE_UNAVAILABLE");
  return message;
}

async function useOnce(options: NatsOptions): Promise<string> {
  await using baton = await connect(await natsEngine(options));
  const cars = baton.queue("cars");
  const receipt = await cars.submit("car1", null, { id: "one" });
  const worker = cars.work(() => undefined);
  const { state } = await receipt.outcome({ timeout: "30s" });
  await worker.stop();
  return state;
}
