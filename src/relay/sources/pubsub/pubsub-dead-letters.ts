/**
 * Where Pub/Sub keeps what is given up: a topic. Its policy alone would deliver a hopeless message at least five times
 * before.
 */
import type { protos } from "@google-cloud/pubsub";
import type { Clients } from "./pubsub-client.ts";
import { pubsubError, STATUS, statusOf } from "./pubsub-errors.ts";
import type { PubsubSettings } from "./pubsub-settings.ts";

/** Writes a copy of a message to the dead letters. */
export type Bury = (message: protos.google.pubsub.v1.IPubsubMessage, reason: string) => Promise<void>;

/** The most bytes of an attribute's value. */
const LONGEST_REASON = 1_024;
const MOST_ATTRIBUTES = 100;
const TOPIC_MS = 10_000;

export function deadLettersOf(
  clients: Clients,
  topic: string | undefined,
  { name, subscription }: PubsubSettings,
): Bury | undefined {
  if (topic === undefined || topic === "") return undefined;
  return async ({ data, attributes, orderingKey, messageId }, reason) => {
    try {
      const publisher = await clients.publisher();
      const own = attributes ?? {};
      // Named like those that Pub/Sub itself adds.
      const added = {
        CloudPubSubDeadLetterSourceSubscription: subscription,
        BatonMessageId: messageId ?? "",
        BatonReason: shorten(reason),
      };
      const hasRoom = Object.keys(own).length + Object.keys(added).length <= MOST_ATTRIBUTES;
      const copy = {
        ...(data === undefined || data === null ? {} : { data }),
        ...(orderingKey === undefined || orderingKey === null || orderingKey === "" ? {} : { orderingKey }),
        attributes: hasRoom ? { ...own, ...added } : own,
      };
      await publisher.publish({ topic, messages: [copy] });
    } catch (cause) {
      throw pubsubError(cause, { source: name, subscription: topic, what: "take a dead letter" });
    }
  };
}

/** Whether the topic for dead letters is there, if the account may ask. */
export async function checkTopic(
  clients: Clients,
  { name, deadLetterTopic: topic }: Pick<PubsubSettings, "name" | "deadLetterTopic">,
): Promise<void> {
  if (topic === undefined || topic === "") return;
  try {
    const publisher = await clients.publisher();
    await publisher.getTopic({ topic }, { timeout: TOPIC_MS, retry: null });
  } catch (cause) {
    // Publishing asks for less.
    if (statusOf(cause) === STATUS.permissionDenied) return;
    throw pubsubError(cause, { source: name, subscription: topic, what: "describe the topic for dead letters" });
  }
}

function shorten(reason: string): string {
  return new TextDecoder().decode(Buffer.from(reason, "utf8").subarray(0, LONGEST_REASON - 3));
}
