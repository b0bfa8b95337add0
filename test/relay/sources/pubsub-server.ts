/**
 * As much of Pub/Sub as a subscriber meets, over real gRPC, from the protocol that the official client ships: pulls
 * that wait, deadlines that run out, ordering keys, attempts. What Google does beyond its
 * documentation, such as when it hands out the next message of a key, is a guess here.
 */
import { createRequire } from "node:module";
import { type handleUnaryCall, Server, ServerCredentials, type ServiceDefinition, status } from "@grpc/grpc-js";
import { fromJSON } from "@grpc/proto-loader";
import type { protos } from "@google-cloud/pubsub";

type Api = typeof protos.google.pubsub.v1;
type Sent = protos.google.pubsub.v1.IPubsubMessage;

interface Kept {
  readonly message: Sent;
  deliveries: number;
  /** Set while somebody holds it. */
  ackId: string | undefined;
  notBefore: number;
}

interface Waiting {
  readonly max: number;
  readonly answer: (messages: readonly protos.google.pubsub.v1.IReceivedMessage[]) => void;
}

class Subscription {
  readonly settings: protos.google.pubsub.v1.ISubscription;
  kept: Kept[] = [];
  readonly #waiting = new Set<Waiting>();
  #timer: NodeJS.Timeout | undefined;
  #count = 0;

  constructor(settings: protos.google.pubsub.v1.ISubscription) {
    this.settings = settings;
  }

  add(message: Sent): void {
    this.kept.push({ message, deliveries: 0, ackId: undefined, notBefore: 0 });
    this.#serve();
  }

  /** Returns how the one who waits goes away. */
  pull(waiting: Waiting, isPatient: boolean): () => void {
    this.#waiting.add(waiting);
    this.#serve();
    if (!isPatient && this.#waiting.delete(waiting)) waiting.answer([]);
    return () => this.#waiting.delete(waiting);
  }

  acknowledge(ackIds: readonly string[]): void {
    this.kept = this.kept.filter(({ ackId }) => ackId === undefined || !ackIds.includes(ackId));
    this.#serve();
  }

  setDeadline(ackIds: readonly string[], seconds: number): void {
    for (const one of this.kept) {
      if (one.ackId === undefined || !ackIds.includes(one.ackId)) continue;
      one.notBefore = Date.now() + seconds * 1_000;
    }
    this.#serve();
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  #serve(): void {
    const now = Date.now();
    for (const one of this.kept) if (one.ackId !== undefined && one.notBefore <= now) one.ackId = undefined;
    for (const waiting of this.#waiting) {
      const found = this.#ready().slice(0, waiting.max);
      if (found.length === 0) break;
      this.#waiting.delete(waiting);
      waiting.answer(found.map((one) => this.#deliver(one)));
    }
    clearTimeout(this.#timer);
    const next = Math.min(...this.kept.filter(({ ackId }) => ackId !== undefined).map(({ notBefore }) => notBefore));
    if (Number.isFinite(next)) this.#timer = setTimeout(() => this.#serve(), next - Date.now() + 1).unref();
  }

  /** One batch of a key at a time, in order: several messages of it may be in one answer. */
  #ready(): readonly Kept[] {
    const busy = new Set(
      this.kept.filter(({ ackId }) => ackId !== undefined).map(({ message }) => message.orderingKey),
    );
    return this.kept.filter(({ ackId, message: { orderingKey } }) => {
      if (ackId !== undefined) return false;
      return this.settings.enableMessageOrdering !== true || orderingKey === "" || !busy.has(orderingKey);
    });
  }

  #deliver(one: Kept): protos.google.pubsub.v1.IReceivedMessage {
    this.#count += 1;
    one.deliveries += 1;
    one.ackId = `${this.settings.name ?? ""}/${this.#count}`;
    one.notBefore = Date.now() + (this.settings.ackDeadlineSeconds ?? 10) * 1_000;
    const counts = (this.settings.deadLetterPolicy ?? undefined) !== undefined;
    return { ackId: one.ackId, message: one.message, deliveryAttempt: counts ? one.deliveries : 0 };
  }
}

export interface PubsubServer extends AsyncDisposable {
  readonly address: string;
  /** What is waiting or held. */
  count(subscription: string): number;
}

export async function startPubsubServer(port = 0): Promise<PubsubServer> {
  const topics = new Set<string>();
  const subscriptions = new Map<string, Subscription>();
  let lastId = 0;

  const publisher = {
    CreateTopic: unary<InstanceType<Api["Topic"]>, InstanceType<Api["Topic"]>>((topic) => {
      topics.add(topic.name);
      return topic;
    }),
    GetTopic: unary<InstanceType<Api["GetTopicRequest"]>, object>(({ topic }) => {
      if (!topics.has(topic)) throw refusal(status.NOT_FOUND, `Topic not found: ${topic}`);
      return { name: topic };
    }),
    Publish: unary<InstanceType<Api["PublishRequest"]>, object>(({ topic, messages }) => {
      if (!topics.has(topic)) throw refusal(status.NOT_FOUND, `Topic not found: ${topic}`);
      const messageIds = messages.map((message) => {
        lastId += 1;
        const now = Date.now();
        const publishTime = { seconds: Math.floor(now / 1_000), nanos: (now % 1_000) * 1e6 };
        for (const subscription of subscriptions.values()) {
          if (subscription.settings.topic !== topic) continue;
          subscription.add({ ...message, messageId: String(lastId), publishTime });
        }
        return String(lastId);
      });
      return { messageIds };
    }),
  };
  const known = (name: string): Subscription => {
    const found = subscriptions.get(name);
    if (found === undefined) throw refusal(status.NOT_FOUND, `Resource not found (resource=${name}).`);
    return found;
  };
  const subscriber = {
    CreateSubscription: unary<InstanceType<Api["Subscription"]>, object>((settings) => {
      subscriptions.set(settings.name, new Subscription(settings));
      return settings;
    }),
    GetSubscription: unary<InstanceType<Api["GetSubscriptionRequest"]>, object>(
      ({ subscription }) => known(subscription).settings,
    ),
    Acknowledge: unary<InstanceType<Api["AcknowledgeRequest"]>, object>(({ subscription, ackIds }) => {
      known(subscription).acknowledge(ackIds);
      return {};
    }),
    ModifyAckDeadline: unary<InstanceType<Api["ModifyAckDeadlineRequest"]>, object>((request) => {
      if (request.ackDeadlineSeconds > 600) throw refusal(status.INVALID_ARGUMENT, "deadline out of range");
      known(request.subscription).setDeadline(request.ackIds, request.ackDeadlineSeconds);
      return {};
    }),
    Pull: ((call, reply) => {
      try {
        const { subscription, maxMessages, returnImmediately } = call.request;
        const waiting = {
          max: maxMessages,
          answer: (receivedMessages: readonly object[]) => reply(null, { receivedMessages }),
        };
        call.on("cancelled", known(subscription).pull(waiting, !returnImmediately));
      } catch (error) {
        reply(error instanceof Error ? error : new Error(String(error)));
      }
    }) satisfies handleUnaryCall<InstanceType<Api["PullRequest"]>, object>,
  };

  const json = createRequire(import.meta.url)("@google-cloud/pubsub/build/protos/protos.json") as Parameters<
    typeof fromJSON
  >[0];
  const definition = fromJSON(json, { defaults: true, longs: Number });
  const server = new Server();
  server.addService(definition["google.pubsub.v1.Publisher"] as ServiceDefinition, publisher);
  server.addService(definition["google.pubsub.v1.Subscriber"] as ServiceDefinition, subscriber);
  const bound = await new Promise<number>((resolve, reject) => {
    server.bindAsync(`127.0.0.1:${port}`, ServerCredentials.createInsecure(), (error, at) => {
      if (error === null) resolve(at);
      else reject(error);
    });
  });
  return {
    address: `127.0.0.1:${bound}`,
    count: (subscription) => known(subscription).kept.length,
    [Symbol.asyncDispose]: async () => {
      for (const subscription of subscriptions.values()) subscription.close();
      server.forceShutdown();
      await Promise.resolve();
    },
  };
}

function unary<Request, Response>(answer: (request: Request) => Response): handleUnaryCall<Request, Response> {
  return (call, reply) => {
    try {
      reply(null, answer(call.request));
    } catch (error) {
      reply(error instanceof Error ? error : new Error(String(error)));
    }
  };
}

function refusal(code: number, message: string): Error {
  return Object.assign(new Error(message), { code, details: message });
}
