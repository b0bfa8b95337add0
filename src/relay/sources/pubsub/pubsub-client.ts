/**
 * The official client, loaded only when a source needs it: its low-level half, because that pulls exactly as many
 * messages as it is told.
 */
import type * as Pubsub from "@google-cloud/pubsub";
import { BatonError } from "../../../domain/errors.ts";
import { isNotFound } from "../../../domain/client-library.ts";
import type { PubsubSettings } from "./pubsub-settings.ts";

export type Sdk = typeof Pubsub;

export interface Clients {
  readonly subscriber: Pubsub.v1.SubscriberClient;
  /** Made when there is a dead letter to write. */
  readonly publisher: () => Promise<Pubsub.v1.PublisherClient>;
  close(): Promise<void>;
}

export async function loadSdk(): Promise<Sdk> {
  try {
    return await import("@google-cloud/pubsub");
  } catch (cause) {
    if (!isNotFound(cause)) throw cause;
    throw new BatonError(
      "ENGINE_MISSING",
      "Sources on Google Pub/Sub need the package @google-cloud/pubsub, which is not installed. Nothing was received. Run: npm install @google-cloud/pubsub",
      { cause },
    );
  }
}

export async function openClients(sdk: Sdk, { subscription, endpoint }: PubsubSettings): Promise<Clients> {
  const [, projectId = ""] = subscription.split("/");
  // Knows about emulators, and how to speak to one.
  const { port, ...found } = await new sdk.PubSub({
    projectId,
    ...(endpoint === undefined ? {} : { apiEndpoint: endpoint }),
  }).getClientConfig();
  const config = {
    ...found,
    ...(port === undefined ? {} : { port: Number(port) }),
    // With an emulator there is nobody to be asked for credentials, yet the client would look for one in the network.
    ...(found.sslCreds === undefined ? {} : { clientOptions: { universeDomain: "googleapis.com" } }),
  };
  const subscriber = new sdk.v1.SubscriberClient(config);
  // Its methods do this too, but let a failure end the process.
  await subscriber.initialize();
  let publisher: Pubsub.v1.PublisherClient | undefined;
  return {
    subscriber,
    publisher: async () => {
      publisher ??= new sdk.v1.PublisherClient(config);
      await publisher.initialize();
      return publisher;
    },
    close: async () => {
      await Promise.all([subscriber.close(), publisher?.close()]);
    },
  };
}
