/**
 * Topics and subscriptions of one's own: on Google's emulator where PUBSUB_EMULATOR_HOST names one, else on the server
 * of these tests.
 */
import { randomUUID } from "node:crypto";
import type { TestContext } from "node:test";
import { PubSub, v1 } from "@google-cloud/pubsub";
import type { Source } from "../../../src/relay/source.ts";
import type { PubsubSettings } from "../../../src/relay/sources/pubsub/pubsub-settings.ts";
import { openPubsub } from "../../../src/relay/sources/pubsub/pubsub-source.ts";
import { startPubsubServer } from "./pubsub-server.ts";

export const PROJECT = "test-project";

export interface SubscriptionOptions {
  readonly name?: string;
  readonly isOrdered?: boolean;
  readonly deadLetterTopic?: string;
  readonly ackDeadlineSeconds?: number;
}

export class PubsubDesk {
  readonly address: string;
  readonly project: string;
  readonly #publisher: v1.PublisherClient;
  readonly #subscriber: v1.SubscriberClient;

  constructor(address: string, project: string, publisher: v1.PublisherClient, subscriber: v1.SubscriberClient) {
    this.address = address;
    this.project = project;
    this.#publisher = publisher;
    this.#subscriber = subscriber;
  }

  async topic(name: string = `topic-${randomUUID()}`): Promise<string> {
    const topic = `projects/${this.project}/topics/${name}`;
    await this.#publisher.createTopic({ name: topic });
    return topic;
  }

  /** A new subscription to the topic, and the settings of a source on it. */
  async subscription(topic: string, options: SubscriptionOptions = {}): Promise<PubsubSettings> {
    const subscription = `projects/${this.project}/subscriptions/${options.name ?? `sub-${randomUUID()}`}`;
    await this.#subscriber.createSubscription({
      name: subscription,
      topic,
      ackDeadlineSeconds: options.ackDeadlineSeconds ?? 10,
      enableMessageOrdering: options.isOrdered ?? false,
      ...(options.deadLetterTopic === undefined
        ? {}
        : { deadLetterPolicy: { deadLetterTopic: options.deadLetterTopic, maxDeliveryAttempts: 5 } }),
    });
    return {
      name: subscription.slice(-8),
      subscription,
      endpoint: this.address,
      ackDeadlineMs: 60_000,
      deadLetterTopic: undefined,
    };
  }

  async publish(
    topic: string,
    text: string,
    more: { readonly orderingKey?: string; readonly attributes?: Record<string, string> } = {},
  ): Promise<string> {
    const [{ messageIds }] = await this.#publisher.publish({ topic, messages: [{ data: Buffer.from(text), ...more }] });
    return messageIds?.[0] ?? "";
  }

  async close(): Promise<void> {
    await Promise.all([this.#publisher.close(), this.#subscriber.close()]);
  }
}

export async function openPubsubDesk(project: string = PROJECT): Promise<PubsubDesk & AsyncDisposable> {
  const emulator = process.env["PUBSUB_EMULATOR_HOST"];
  const server = emulator === undefined ? await startPubsubServer() : undefined;
  const address = server?.address ?? emulator ?? "";
  const { port, ...config } = await new PubSub({ projectId: project, apiEndpoint: address }).getClientConfig();
  const options = { ...config, port: Number(port), clientOptions: { universeDomain: "googleapis.com" } };
  const desk = new PubsubDesk(address, project, new v1.PublisherClient(options), new v1.SubscriberClient(options));
  return Object.assign(desk, {
    [Symbol.asyncDispose]: async () => {
      await desk.close();
      await server?.[Symbol.asyncDispose]();
    },
  });
}

/** A source that is closed when the test ends. */
export async function pubsubSourceOf(t: TestContext, settings: PubsubSettings): Promise<Source> {
  const source = await openPubsub(settings);
  t.after(() => source.close());
  return source;
}
