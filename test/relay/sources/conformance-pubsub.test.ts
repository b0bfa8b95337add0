/** Pub/Sub keeps what every source promises. */
import { after, before, describe } from "node:test";
import type { SourceQueue, SourceTarget } from "../../../src/conformance/index.ts";
import { openPubsub } from "../../../src/relay/sources/pubsub/pubsub-source.ts";
import { addSourceTests } from "../core/add-source-tests.ts";
import { openPubsubDesk, type PubsubDesk } from "./pubsub-desk.ts";
import { now, textOf } from "./received.ts";

let desk: PubsubDesk & AsyncDisposable;
before(async () => {
  desk = await openPubsubDesk();
});
after(() => desk[Symbol.asyncDispose]());

const uncount = "Pub/Sub counts every delivery";

describe("Pub/Sub", { concurrency: 2 }, () => {
  addSourceTests("a subscription without ordering", {
    ...target(false),
    cannot: { keys: "it keeps no order", uncount },
  });
  addSourceTests("a subscription with ordering", { ...target(true), cannot: { uncount } });
});

function target(isOrdered: boolean): SourceTarget {
  return {
    name: isOrdered ? "pubsub-ordered" : "pubsub",
    // Long enough for a machine with much else to do. Google and its emulator take no deadline below 10 s for a
    // subscription.
    shortestHoldMs: process.env["PUBSUB_EMULATOR_HOST"] === undefined ? 4_000 : 10_000,
    create: (holdMs) => queue(isOrdered, holdMs),
  };
}

async function queue(isOrdered: boolean, holdMs: number): Promise<SourceQueue> {
  const [topic, deadLetterTopic] = [await desk.topic(), await desk.topic()];
  const options = { isOrdered, deadLetterTopic, ackDeadlineSeconds: Math.ceil(holdMs / 1_000) };
  const settings = { ...(await desk.subscription(topic, options)), ackDeadlineMs: holdMs };
  const letters = await openPubsub(await desk.subscription(deadLetterTopic));
  return {
    open: () => openPubsub(settings),
    send: async ({ data, key, attributes }) => {
      await desk.publish(topic, data, {
        ...(isOrdered && key !== undefined ? { orderingKey: key } : {}),
        ...(attributes === undefined ? {} : { attributes }),
      });
    },
    buried: async () => (await letters.receive({ max: 10, signal: now })).map(textOf),
    dispose: () => letters.close(),
  };
}
