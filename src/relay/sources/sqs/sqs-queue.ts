/**
 * One queue of SQS through the official client: its address, what it hands out, and what it is told about each message.
 */
import { randomUUID } from "node:crypto";
import type {
  BatchResultErrorEntry,
  ChangeMessageVisibilityBatchRequestEntry,
  DeleteMessageBatchRequestEntry,
  Message,
} from "@aws-sdk/client-sqs";
import type { Instant } from "../../../domain/clock.ts";
import type { SourceMessage } from "../../source.ts";
import { Batch } from "../polling/batch.ts";
import { HeldMessage } from "../polling/held-message.ts";
import type { FetchRequest } from "../polling/poll-line.ts";
import { attributeNumber, attributesOf } from "./sqs-attributes.ts";
import { SignsOfLife } from "../polling/signs-of-life.ts";
import { Untried } from "../polling/untried.ts";
import { type Sdk, SqsConnection, urlOf } from "./sqs-client.ts";
import { type Bury, deadLettersOf } from "./sqs-dead-letters.ts";
import { type SqsRequest, sqsError } from "./sqs-errors.ts";
import { LONGEST_HOLD_MS, type SqsSettings } from "./sqs-settings.ts";

export interface SqsQueue {
  /** Its address, and where its dead letters go. Done by itself before the first request. */
  find(): Promise<unknown>;
  /** Rejects unless the queue is there, and answers with these credentials. Takes nothing out of it. */
  check(): Promise<void>;
  /** Undefined: it was not found yet. */
  hasDeadLetters(): boolean | undefined;
  fetch(request: FetchRequest): Promise<readonly SourceMessage[]>;
  close(): void;
}

/** What the queue turned out to be, when it was first reached. */
interface Found {
  readonly url: string;
  readonly bury: Bury | undefined;
}

/** The most that SQS waits. */
export const WAIT_SECONDS = 20;
/**
 * A message that was handed to a poll which is broken off, or to a process that dies at that moment, is hidden for its
 * first hold with nobody to work on it. So the first is short, and the visibility that the configuration asks for comes
 * with the first extension.
 */
const FIRST_HOLD_SECONDS = 30;
const BATCH = { most: 10, requests: 8 };
/** A connection that died without a word is given up so long after the poll should have ended. */
const LATE_MS = 10_000;

export function openSqsQueue(sdk: Sdk, settings: SqsSettings): SqsQueue {
  const sqs = new SqsConnection(sdk, settings);
  const holdSeconds = Math.max(1, Math.ceil(settings.visibilityMs / 1_000));
  const firstSeconds = Math.min(holdSeconds, FIRST_HOLD_SECONDS);
  const isFifo = settings.queue.endsWith(".fifo");
  const about = (what: string): SqsRequest => ({ source: settings.name, queue: settings.queue, what });
  let found: Promise<Found> | undefined;
  let hasDeadLetters: boolean | undefined;
  const find = async (): Promise<Found> => {
    const finding = (found ??= findQueue(sqs, settings));
    try {
      const queue = await finding;
      hasDeadLetters = queue.bury !== undefined;
      return queue;
    } catch (error) {
      if (found === finding) found = undefined;
      throw error;
    }
  };
  const removals = new Batch<Entry>({
    ...BATCH,
    send: async (entries) => {
      const { url } = await find();
      const command = new sdk.DeleteMessageBatchCommand({ QueueUrl: url, Entries: entries.map(numbered) });
      const { Failed } = await sqs.ask((options) => sqs.client.send(command, options));
      return entries.map(({ id }, index) => failureOf(Failed, index, { ...about("delete a message"), message: id }));
    },
  });
  const changes = new Batch<Entry & { readonly seconds: number }>({
    ...BATCH,
    send: async (entries) => {
      const { url } = await find();
      const Entries = entries.map((entry, index) => ({ ...numbered(entry, index), VisibilityTimeout: entry.seconds }));
      const command = new sdk.ChangeMessageVisibilityBatchCommand({ QueueUrl: url, Entries });
      const { Failed } = await sqs.ask((options) => sqs.client.send(command, options));
      const what = about("change the visibility of a message");
      return entries.map(({ id }, index) => failureOf(Failed, index, { ...what, message: id }));
    },
  });

  const untried = new Untried();
  const messageOf = (message: Message, bury: Bury | undefined, since: Instant): SourceMessage => {
    const id = message.MessageId ?? "";
    const receipt = message.ReceiptHandle ?? "";
    return new HeldMessage({
      source: settings.name,
      id,
      data: Buffer.from(message.Body ?? "", "utf8"),
      attributes: attributesOf(message),
      // On a standard queue a group is a tenant that SQS serves fairly, and neither ordered nor exclusive.
      key: isFifo ? message.Attributes?.MessageGroupId : undefined,
      attempt: attributeNumber(message, "ApproximateReceiveCount"),
      untried,
      sentAt: attributeNumber(message, "SentTimestamp"),
      since,
      firstHoldMs: firstSeconds * 1_000,
      holdMs: holdSeconds * 1_000,
      queue: {
        longestHoldMs: LONGEST_HOLD_MS,
        longestDelayMs: LONGEST_HOLD_MS,
        hide: (ms) =>
          mapped(about("change the visibility of a message"), () =>
            changes.add({ id, receipt, seconds: Math.ceil(ms / 1_000) }),
          ),
        remove: () => mapped(about("delete a message"), () => removals.add({ id, receipt })),
        copyToDeadLetters: bury === undefined ? undefined : (reason) => bury(message, reason),
      },
    });
  };

  return {
    find,
    check: () =>
      mapped(about("describe the queue"), async () => {
        const { url } = await find();
        // A queue that is given by its URL has not been asked for anything yet.
        const question = new sdk.GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ["QueueArn"] });
        await sqs.ask((options) => sqs.client.send(question, options));
      }),
    hasDeadLetters: () => hasDeadLetters,
    fetch: ({ most, wait, signal }) =>
      mapped(about("give messages"), async () => {
        const { url, bury } = await find();
        const seconds = wait ? WAIT_SECONDS : 0;
        const command = new sdk.ReceiveMessageCommand({
          QueueUrl: url,
          MaxNumberOfMessages: most,
          WaitTimeSeconds: seconds,
          VisibilityTimeout: firstSeconds,
          MessageSystemAttributeNames: ["All"],
          MessageAttributeNames: ["All"],
          // Who repeats the request because the answer was lost is given the same messages, instead of a blocked group.
          ...(isFifo ? { ReceiveRequestAttemptId: randomUUID() } : {}),
        });
        const limits = { withinMs: seconds * 1_000 + LATE_MS, signal };
        using life = new SignsOfLife();
        const { Messages = [] } = await sqs.ask((options) => sqs.client.send(command, options), limits);
        const since = life.answeredSince();
        return Messages.map((message) => messageOf(message, bury, since));
      }),
    close: () => sqs.close(),
  };
}

interface Entry {
  readonly id: string;
  readonly receipt: string;
}

function numbered(
  { receipt }: Entry,
  index: number,
): DeleteMessageBatchRequestEntry & ChangeMessageVisibilityBatchRequestEntry {
  return { Id: String(index), ReceiptHandle: receipt };
}

function failureOf(
  failed: readonly BatchResultErrorEntry[] = [],
  index: number,
  request: SqsRequest,
): Error | undefined {
  const entry = failed.find(({ Id }) => Id === String(index));
  if (entry === undefined) return undefined;
  const cause = new Error(entry.Message ?? "no reason was given");
  cause.name = (entry.Code ?? "unknown").replace(/^.*[.#]/, "");
  return sqsError(cause, request);
}

async function mapped<T>(request: SqsRequest, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    throw sqsError(cause, request);
  }
}

async function findQueue(sqs: SqsConnection, settings: SqsSettings): Promise<Found> {
  const url = await urlOf(sqs, settings.queue);
  return { url, bury: await deadLettersOf(sqs, url, settings) };
}
