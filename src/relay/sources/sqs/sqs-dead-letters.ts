/**
 * Where SQS keeps what is given up. The redrive policy alone would show a hopeless message as often as it allows before
 * it moves it; the relay copies such a message there at once, with the reason, and deletes it.
 */
import type { Message, MessageAttributeValue, SQSClient } from "@aws-sdk/client-sqs";
import { type Sdk, urlOf } from "./sqs-client.ts";
import { sqsError } from "./sqs-errors.ts";
import type { SqsSettings } from "./sqs-settings.ts";

/** Writes a copy of a message to the dead letters. */
export type Bury = (message: Message, reason: string) => Promise<void>;

/** A message has no more attributes than this. */
const MOST_ATTRIBUTES = 10;
const LONGEST_REASON = 1_000;

export async function deadLettersOf(
  sdk: Sdk,
  client: SQSClient,
  url: string,
  settings: SqsSettings,
): Promise<Bury | undefined> {
  const target =
    settings.deadLetterQueue === undefined
      ? await redriveTarget(sdk, client, url)
      : await urlOf(sdk, client, settings.deadLetterQueue);
  if (target === undefined) return undefined;
  return async (message, reason) => {
    const request = { QueueUrl: target, ...copyOf(message, target) };
    const withReason = { ...request, MessageAttributes: { ...request.MessageAttributes, ...reasonOf(reason) } };
    const hasRoom = Object.keys(withReason.MessageAttributes).length <= MOST_ATTRIBUTES;
    try {
      try {
        await client.send(new sdk.SendMessageCommand(hasRoom ? withReason : request));
      } catch (error) {
        // The reason may be what makes the message too long. The message matters more.
        if (!hasRoom || !(error instanceof sdk.SQSServiceException) || error.$fault !== "client") throw error;
        await client.send(new sdk.SendMessageCommand(request));
      }
    } catch (cause) {
      throw sqsError(cause, { source: settings.name, queue: target, what: "take a dead letter" });
    }
  };
}

/** Undefined: the queue has none, or does not tell whoever may only receive. */
async function redriveTarget(sdk: Sdk, client: SQSClient, url: string): Promise<string | undefined> {
  try {
    const request = { QueueUrl: url, AttributeNames: ["RedrivePolicy" as const] };
    const { Attributes } = await client.send(new sdk.GetQueueAttributesCommand(request));
    const policy: unknown = JSON.parse(Attributes?.["RedrivePolicy"] ?? "null");
    if (typeof policy !== "object" || policy === null || !("deadLetterTargetArn" in policy)) return undefined;
    const [account, name] = String(policy.deadLetterTargetArn).split(":").slice(-2);
    const found = await client.send(
      new sdk.GetQueueUrlCommand({ QueueName: name, ...(account === "" ? {} : { QueueOwnerAWSAccountId: account }) }),
    );
    return found.QueueUrl;
  } catch (error) {
    const denied = error instanceof Error && /^(AccessDenied|QueueDoesNotExist)/.test(error.name);
    if (denied || error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function copyOf(
  message: Message,
  target: string,
): {
  readonly MessageBody: string;
  readonly MessageAttributes: Record<string, MessageAttributeValue>;
  readonly MessageGroupId?: string;
  readonly MessageDeduplicationId?: string;
} {
  const own = { MessageBody: message.Body ?? "", MessageAttributes: message.MessageAttributes ?? {} };
  if (!target.endsWith(".fifo")) return own;
  // Copied twice by two relays within five minutes, it is there once.
  return {
    ...own,
    MessageGroupId: message.Attributes?.MessageGroupId ?? "baton",
    ...(message.MessageId === undefined ? {} : { MessageDeduplicationId: message.MessageId }),
  };
}

function reasonOf(reason: string): Record<string, MessageAttributeValue> {
  // SQS takes XML's characters only.
  // oxlint-disable-next-line no-control-regex
  const text = reason.replace(/[^\u0009\u000a\u000d\u0020-\ud7ff\ue000-\ufffd]/g, "\ufffd").slice(0, LONGEST_REASON);
  return { BatonReason: { DataType: "String", StringValue: text === "" ? "none was given" : text } };
}
