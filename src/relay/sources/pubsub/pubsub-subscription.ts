/** One subscription through the official client: what it hands out, and what it is told about each message. */
import type { protos } from "@google-cloud/pubsub";
import type { Instant } from "../../../domain/clock.ts";
import type { SourceMessage } from "../../source.ts";
import { Batch } from "../polling/batch.ts";
import { HeldMessage } from "../polling/held-message.ts";
import { MessageLost } from "../polling/hold.ts";
import type { FetchRequest } from "../polling/poll-line.ts";
import { SignsOfLife } from "../polling/signs-of-life.ts";
import { Untried } from "../polling/untried.ts";
import { type Clients, openClients, type Sdk } from "./pubsub-client.ts";
import { type Bury, checkTopic, deadLettersOf } from "./pubsub-dead-letters.ts";
import { failuresOf, pubsubError, type PubsubRequest, STATUS, statusOf } from "./pubsub-errors.ts";
import { LONGEST_ACK_DEADLINE_MS, type PubsubSettings } from "./pubsub-settings.ts";
import { pull } from "./pull.ts";

export interface Subscription {
  /** Until it is known to keep no order, it is treated as if it did. */
  isOrdered(): boolean;
  /** Connects, and asks what the subscription is like. Done by itself before the first request. */
  find(): Promise<unknown>;
  /** Rejects unless the subscription is there, and answers with these credentials. Takes nothing out of it. */
  check(): Promise<void>;
  /** Undefined: it was not reached yet. */
  hasDeadLetters(): boolean | undefined;
  fetch(request: FetchRequest): Promise<readonly SourceMessage[]>;
  close(): Promise<void>;
}

/** What the subscription turned out to be, when it was first reached. */
interface Found {
  readonly clients: Clients;
  readonly isOrdered: boolean;
  /** What a message has until it is first extended. */
  readonly deadlineSeconds: number;
  readonly bury: Bury | undefined;
}

/** The shortest that a subscription can be set to. */
const SHORTEST_SECONDS = 10;
/** Well below the 512 KiB that a request may have: an id has about 200 characters. */
const BATCH = { most: 500, requests: 4 };
/**
 * Ordinary requests are answered in milliseconds. The client would try one for ten minutes, and a hold is lost
 * meanwhile.
 */
const REQUEST = {
  timeout: 10_000,
  retry: {
    retryCodes: [STATUS.unavailable],
    backoffSettings: {
      initialRetryDelayMillis: 100,
      retryDelayMultiplier: 2,
      maxRetryDelayMillis: 1_000,
      initialRpcTimeoutMillis: 10_000,
      rpcTimeoutMultiplier: 1,
      maxRpcTimeoutMillis: 10_000,
      totalTimeoutMillis: 15_000,
    },
  },
};

export function openSubscription(sdk: Sdk, settings: PubsubSettings): Subscription {
  const { name: source, subscription } = settings;
  const about = (what: string): PubsubRequest => ({ source, subscription, what });
  const holdSeconds = Math.ceil(Math.min(LONGEST_ACK_DEADLINE_MS, Math.max(1_000, settings.ackDeadlineMs)) / 1_000);
  let known: Found | undefined;
  let finding: Promise<Found> | undefined;
  const find = async (): Promise<Found> => {
    finding ??= findSubscription(sdk, settings);
    try {
      known = await finding;
      return known;
    } catch (error) {
      finding = undefined;
      throw error;
    }
  };
  const acknowledgements = new Batch<string>({
    ...BATCH,
    send: async (ackIds) => {
      const { clients } = await find();
      return await each(ackIds, about("take acknowledgements"), async (some) => {
        await clients.subscriber.acknowledge({ subscription, ackIds: [...some] }, REQUEST);
      });
    },
  });
  const deadlines = new Batch<{ readonly ackId: string; readonly seconds: number }>({
    ...BATCH,
    send: async (entries) => {
      const { clients } = await find();
      const results = new Map<string, Error | undefined>();
      for (const [seconds, group] of Map.groupBy(entries, (entry) => entry.seconds)) {
        const ackIds = group.map(({ ackId }) => ackId);
        const errors = await each(ackIds, about("change the deadline of messages"), async (some) => {
          const request = { subscription, ackIds: [...some], ackDeadlineSeconds: seconds };
          await clients.subscriber.modifyAckDeadline(request, REQUEST);
        });
        for (const [index, ackId] of ackIds.entries()) results.set(ackId, errors[index]);
      }
      return entries.map(({ ackId }) => results.get(ackId));
    },
  });

  const untried = new Untried();
  const messageOf = (
    received: protos.google.pubsub.v1.IReceivedMessage,
    firstSeconds: number,
    since: Instant,
    bury: Bury | undefined,
  ): SourceMessage => {
    const ackId = received.ackId ?? "";
    const message = received.message ?? {};
    return new HeldMessage({
      source,
      id: message.messageId ?? "",
      data: typeof message.data === "string" ? Buffer.from(message.data, "base64") : (message.data ?? new Uint8Array()),
      attributes: message.attributes ?? {},
      key: message.orderingKey === "" ? undefined : (message.orderingKey ?? undefined),
      // 0 where the subscription has no dead-letter policy: then Pub/Sub does not count.
      attempt: (received.deliveryAttempt ?? 0) > 0 ? (received.deliveryAttempt ?? undefined) : undefined,
      untried,
      sentAt: millisecondsOf(message.publishTime),
      since,
      firstHoldMs: firstSeconds * 1_000,
      holdMs: holdSeconds * 1_000,
      queue: {
        longestHoldMs: Infinity,
        longestDelayMs: LONGEST_ACK_DEADLINE_MS,
        hide: (ms) => deadlines.add({ ackId, seconds: Math.ceil(ms / 1_000) }),
        remove: () => acknowledgements.add(ackId),
        copyToDeadLetters: bury === undefined ? undefined : (reason) => bury(message, reason),
      },
    });
  };

  return {
    isOrdered: () => known?.isOrdered ?? true,
    find,
    check: async () => {
      try {
        const { clients } = await find();
        await clients.subscriber.getSubscription({ subscription }, { timeout: REQUEST.timeout, retry: null });
        await checkTopic(clients, settings);
      } catch (cause) {
        throw pubsubError(cause, about("describe the subscription"));
      }
    },
    hasDeadLetters: () => (known === undefined ? undefined : known.bury !== undefined),
    fetch: async (request) => {
      try {
        const { clients, bury, deadlineSeconds } = await find();
        using life = new SignsOfLife();
        const received = await pull(clients.subscriber, subscription, request);
        const since = life.answeredSince();
        return received.map((message) => messageOf(message, deadlineSeconds, since, bury));
      } catch (cause) {
        throw pubsubError(cause, about("give messages"));
      }
    },
    close: async () => {
      await known?.clients.close();
    },
  };
}

async function findSubscription(sdk: Sdk, settings: PubsubSettings): Promise<Found> {
  const clients = await openClients(sdk, settings);
  try {
    const [found] = await clients.subscriber.getSubscription(
      { subscription: settings.subscription },
      { timeout: REQUEST.timeout, retry: null },
    );
    const topic = settings.deadLetterTopic ?? found.deadLetterPolicy?.deadLetterTopic ?? undefined;
    return {
      clients,
      isOrdered: found.enableMessageOrdering ?? false,
      deadlineSeconds: found.ackDeadlineSeconds ?? SHORTEST_SECONDS,
      bury: deadLettersOf(clients, topic, settings),
    };
  } catch (error) {
    // Whoever may only receive is not told more.
    if (statusOf(error) === STATUS.permissionDenied) {
      const bury = deadLettersOf(clients, settings.deadLetterTopic, settings);
      return { clients, isOrdered: true, deadlineSeconds: SHORTEST_SECONDS, bury };
    }
    await clients.close();
    throw error;
  }
}

/** One request for all; when that one is refused for what is in it, and it is not said for which, one for each. */
async function each(
  ackIds: readonly string[],
  request: PubsubRequest,
  send: (ackIds: readonly string[]) => Promise<void>,
): Promise<readonly (Error | undefined)[]> {
  try {
    await send(ackIds);
    return [];
  } catch (error) {
    const failures = failuresOf(error, ackIds, request);
    if (failures !== undefined) return failures;
    const status = statusOf(error);
    const isRefused = status === STATUS.invalidArgument || status === STATUS.failedPrecondition;
    if (!isRefused) throw pubsubError(error, request);
    const [only] = ackIds;
    if (ackIds.length === 1 && only !== undefined) {
      return [new MessageLost(request.source, only, "Pub/Sub does not know its acknowledgement id", { cause: error })];
    }
    return (await Promise.all(ackIds.map((ackId) => each([ackId], request, send)))).map(([first]) => first);
  }
}

function millisecondsOf(time: protos.google.protobuf.ITimestamp | null | undefined): number | undefined {
  if (time?.seconds === undefined || time.seconds === null) return undefined;
  return Number(time.seconds) * 1_000 + Math.floor((time.nanos ?? 0) / 1e6);
}
