/** Keys that carry a few items each: consumers know them by the first, and they stand otherwise. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect as connectNats } from "@nats-io/transport-node";
import { natsEngineOn } from "../../src/engines/nats/index.ts";
import { type BatonEvent, connect } from "../../src/index.ts";
import { leftInStream, NatsDesk } from "./desk.ts";

const KEYS = 1_000;
/** A start, an end and an acknowledgement for two items, and some to spare. To be refused, to read and to write again takes 3.5. */
const MOST_PER_ITEM = 2.8;

test("keys of two items are started and ended without being refused first", { timeout: 60_000 }, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  await using producer = await connect(server.url);
  const items = Array.from({ length: KEYS }, (_, index) => ({ key: `car ${index}`, payload: index }));
  for (let round = 0; round < 2; round += 1) await producer.queue<number>("cars").submitMany(items);
  const connection = await connectNats({ servers: [server.url] });
  context.after(() => connection.close());
  // On a busy machine some keys are kept for too long before they begin, and go back.
  let released = 0;
  const onEvent = ({ type }: BatonEvent): void => void (released += type === "released" ? 1 : 0);
  await using baton = await connect(await natsEngineOn(connection), { onEvent });
  const ran = new Map<string, number>();
  const all = Promise.withResolvers<void>();
  let count = 0;
  const before = connection.stats().outMsgs;
  const worker = baton.queue<number>("cars").work(
    ({ key }) => {
      ran.set(key, (ran.get(key) ?? 0) + 1);
      count += 1;
      if (count === KEYS * 2) all.resolve();
    },
    { concurrency: 16 },
  );
  await all.promise;
  await worker.stop();
  const sent = (connection.stats().outMsgs - before) / (KEYS * 2 + released);
  context.diagnostic(`${sent.toFixed(2)} messages per item`);
  assert.deepEqual(new Set(ran.values()), new Set([2]));
  assert.ok(sent < MOST_PER_ITEM, `${sent.toFixed(2)} messages per item`);
  assert.equal(await leftInStream(server.port, "baton-cars", 20_000), 0);
});
