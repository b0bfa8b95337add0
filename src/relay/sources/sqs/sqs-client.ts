/** The official client, loaded only when a source needs it. */
import type * as Sqs from "@aws-sdk/client-sqs";
import { BatonError } from "../../../domain/errors.ts";
import type { SqsSettings } from "./sqs-settings.ts";

export type Sdk = typeof Sqs;

/**
 * Long polls, batches and single requests at a time, with room to spare: no request may wait for a socket behind long
 * polls.
 */
const SOCKETS = 64;

export async function loadSdk(): Promise<Sdk> {
  try {
    return await import("@aws-sdk/client-sqs");
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "ERR_MODULE_NOT_FOUND")) throw cause;
    throw new BatonError(
      "ENGINE_MISSING",
      "Sources on AWS SQS need the package @aws-sdk/client-sqs, which is not installed. Nothing was received. Run: npm install @aws-sdk/client-sqs",
      { cause },
    );
  }
}

export function clientOf(sdk: Sdk, { queue, region, endpoint }: SqsSettings): Sqs.SQSClient {
  const ofUrl = /^https?:\/\/sqs\.([a-z0-9-]+)\./.exec(queue)?.[1];
  const where = region ?? ofUrl;
  return new sdk.SQSClient({
    ...(where === undefined ? {} : { region: where }),
    // An emulator's URLs often name a host that only the emulator knows.
    ...(endpoint === undefined ? {} : { endpoint, useQueueUrlAsEndpoint: false }),
    requestHandler: { httpAgent: { maxSockets: SOCKETS }, httpsAgent: { maxSockets: SOCKETS } },
  });
}

export async function urlOf(sdk: Sdk, client: Sqs.SQSClient, queue: string): Promise<string> {
  if (/^https?:/.test(queue)) return queue;
  const { QueueUrl } = await client.send(new sdk.GetQueueUrlCommand({ QueueName: queue }));
  return QueueUrl ?? "";
}
