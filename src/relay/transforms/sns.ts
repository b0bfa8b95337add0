/** SNS delivers to SQS in an envelope, unless raw delivery is switched on for the subscription. */
import { Fatal, show } from "../../domain/errors.ts";
import { guessedType } from "../media-type.ts";
import type { Content, Transform } from "../transform.ts";
import { objectOf } from "./json-content.ts";

/** What an envelope says beside the message. Attributes of publishers cannot begin with "AWS." */
const FACTS = ["TopicArn", "MessageId", "Subject", "Timestamp"];

export const unwrapSns: Transform = {
  name: "sns",
  apply(content) {
    const envelope = objectOf(content, "sns");
    const wrong = ["Type", "MessageId", "TopicArn", "Message", "Timestamp"].filter(
      (field) => typeof envelope[field] !== "string",
    );
    if (wrong.length > 0)
      throw new Fatal(`Transform sns: the message is not an SNS envelope: it has no text in ${wrong.join(", ")}.`);
    if (envelope["Type"] !== "Notification") {
      throw new Fatal(
        `Transform sns: the envelope is a ${show(envelope["Type"])}, not a Notification: there is no message in it.`,
      );
    }
    const facts = FACTS.flatMap((name) => {
      const value = envelope[name];
      return typeof value === "string" ? [[`AWS.SNS.${name}`, value] as const] : [];
    });
    const attributes = { ...content.attributes, ...publishersOf(envelope), ...Object.fromEntries(facts) };
    return unwrapped(envelope, attributes, contentTypeOf(attributes));
  },
};

/**
 * The original service's transform of this name: Dapr's publisher for AWS sends CloudEvents through SNS. Like the
 * original, it wants nothing of the envelope but its message; what is left is what Dapr would deliver.
 */
export const unwrapDaprAws: Transform = {
  name: "dapr_aws",
  apply(content) {
    const envelope = objectOf(content, "dapr_aws");
    if (typeof envelope["Message"] !== "string")
      throw new Fatal("Transform dapr_aws: the message is not an SNS envelope: it has no text in Message.");
    return unwrapped(
      envelope,
      content.attributes,
      isCloudEvent(envelope["Message"]) ? "application/cloudevents+json" : "application/json",
    );
  },
};

function unwrapped(
  { Message: message }: Readonly<Record<string, unknown>>,
  attributes: Content["attributes"],
  contentType: string | undefined,
): Content {
  const data = Buffer.from(String(message), "utf8");
  return { data, contentType: contentType ?? guessedType(data), attributes };
}

/** `{"colour": {"Type": "String", "Value": "red"}}` */
function publishersOf({ MessageAttributes: given }: Readonly<Record<string, unknown>>): Record<string, string> {
  const found = Object.entries(given ?? {}).flatMap(([name, value]: [string, unknown]) =>
    typeof value === "object" && value !== null && "Value" in value && typeof value.Value === "string"
      ? [[name, value.Value] as const]
      : [],
  );
  return Object.fromEntries(found);
}

function contentTypeOf(attributes: Content["attributes"]): string | undefined {
  return Object.entries(attributes).find(([name]) => /^content[-_]?type$/i.test(name))?.[1];
}

function isCloudEvent(message: string): boolean {
  try {
    const value: unknown = JSON.parse(message);
    return typeof value === "object" && value !== null && "specversion" in value;
  } catch {
    return false;
  }
}
