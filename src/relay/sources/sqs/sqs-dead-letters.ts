/**
 * Where SQS keeps what is given up. The redrive policy alone would show a hopeless message as often as it allows before
 * it moves it; the relay copies such a message there at once, with the reason, and deletes it.
 */
import type { Message, MessageAttributeValue, SendMessageCommandInput } from "@aws-sdk/client-sqs";
import { isError } from "../../../domain/realms.ts";
import { type SqsConnection, urlOf } from "./sqs-client.ts";
import { sqsError } from "./sqs-errors.ts";
import type { SqsSettings } from "./sqs-settings.ts";

/** Writes a copy of a message to the dead letters. */
export type Bury = (message: Message, reason: string) => Promise<void>;

/** A message has no more attributes than this. */
const MOST_ATTRIBUTES = 10;
const LONGEST_REASON = 1_000;

export async function deadLettersOf(sqs: SqsConnection, url: string, settings: SqsSettings): Promise<Bury | undefined> {
  const { deadLetterQueue } = settings;
  const target =
    deadLetterQueue === undefined ? await redriveTarget(sqs, url) : await named(sqs, settings.name, deadLetterQueue);
  if (target === undefined) return undefined;
  const send = (request: SendMessageCommandInput): Promise<unknown> =>
    sqs.ask((options) => sqs.client.send(new sqs.sdk.SendMessageCommand(request), options));
  return async (message, reason) => {
    const request = { QueueUrl: target, ...copyOf(message, target) };
    const withReason = { ...request, MessageAttributes: { ...request.MessageAttributes, ...reasonOf(reason) } };
    const hasRoom = Object.keys(withReason.MessageAttributes).length <= MOST_ATTRIBUTES;
    try {
      try {
        await send(hasRoom ? withReason : request);
      } catch (error) {
        // The reason may be what makes the message too long. The message matters more.
        if (!hasRoom || !(error instanceof sqs.sdk.SQSServiceException) || error.$fault !== "client") throw error;
        await send(request);
      }
    } catch (cause) {
      throw sqsError(cause, { source: settings.name, queue: target, what: "take a dead letter" });
    }
  };
}

/** Its name stands in the error: the queue itself may be there. */
async function named(sqs: SqsConnection, source: string, queue: string): Promise<string> {
  try {
    return await urlOf(sqs, queue);
  } catch (cause) {
    throw sqsError(cause, { source, queue, what: "find the dead letters" });
  }
}

/** Undefined: the queue has none, or does not tell whoever may only receive. */
async function redriveTarget(sqs: SqsConnection, url: string): Promise<string | undefined> {
  try {
    const question = new sqs.sdk.GetQueueAttributesCommand({ QueueUrl: url, AttributeNames: ["RedrivePolicy"] });
    const { Attributes } = await sqs.ask((options) => sqs.client.send(question, options));
    const policy: unknown = JSON.parse(Attributes?.["RedrivePolicy"] ?? "null");
    if (typeof policy !== "object" || policy === null || !("deadLetterTargetArn" in policy)) return undefined;
    const [account, name] = String(policy.deadLetterTargetArn).split(":").slice(-2);
    const owner = account === "" ? {} : { QueueOwnerAWSAccountId: account };
    const command = new sqs.sdk.GetQueueUrlCommand({ QueueName: name, ...owner });
    const { QueueUrl } = await sqs.ask((options) => sqs.client.send(command, options));
    return QueueUrl;
  } catch (error) {
    const denied = isError(error) && /^(AccessDenied|QueueDoesNotExist)/.test(error.name);
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
