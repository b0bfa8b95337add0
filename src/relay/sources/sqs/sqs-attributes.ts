/**
 * What travels beside a message: the sender's attributes by their names, and those of SQS with "AWS." before, which
 * senders may not use.
 */
import type { Message, MessageAttributeValue, MessageSystemAttributeName } from "@aws-sdk/client-sqs";

export function attributesOf(message: Message): Readonly<Record<string, string>> {
  const own = Object.entries(message.MessageAttributes ?? {}).map(([name, value]) => [name, textOf(value)] as const);
  const system = Object.entries(message.Attributes ?? {}).map(([name, value]) => [`AWS.${name}`, value] as const);
  return Object.fromEntries([...own, ...system]);
}

export function attributeNumber(message: Message, name: MessageSystemAttributeName): number | undefined {
  const text = message.Attributes?.[name];
  return text === undefined ? undefined : Number(text);
}

/** Numbers come as text. Bytes are given as base64, because attributes become headers. */
function textOf({ StringValue, BinaryValue }: MessageAttributeValue): string {
  return StringValue ?? Buffer.from(BinaryValue ?? []).toString("base64");
}
