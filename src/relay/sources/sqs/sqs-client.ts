/** The official client, loaded only when a source needs it, and a limit to how long it waits for an answer. */
import type * as Sqs from "@aws-sdk/client-sqs";
import { BatonError } from "../../../domain/errors.ts";
import { isNotFound } from "../../../domain/client-library.ts";
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
    if (!isNotFound(cause)) throw cause;
    throw new BatonError(
      "ENGINE_MISSING",
      "Sources on AWS SQS need the package @aws-sdk/client-sqs, which is not installed. Nothing was received. Run: npm install @aws-sdk/client-sqs",
      { cause },
    );
  }
}

/** Ordinary requests are answered in milliseconds. */
const ANSWER_MS = 10_000;

export interface AskLimits {
  /** What the request may take in all, with the client's own repetitions. */
  readonly withinMs?: number;
  /** Breaks the request off. */
  readonly signal?: AbortSignal;
}

/**
 * Every request goes through `ask`. By itself the client waits for an answer for ever: one that was swallowed on the
 * way would keep a message, its key, and the end of the process waiting.
 */
export class SqsConnection {
  readonly sdk: Sdk;
  readonly client: Sqs.SQSClient;
  readonly #closing = new AbortController();

  constructor(sdk: Sdk, settings: SqsSettings) {
    this.sdk = sdk;
    this.client = clientOf(sdk, settings);
  }

  async ask<T>(
    send: (options: { readonly abortSignal: AbortSignal }) => Promise<T>,
    { withinMs = ANSWER_MS, signal }: AskLimits = {},
  ): Promise<T> {
    const over = new AbortController();
    // Also while the client looks for credentials, which nothing can break off.
    const ended = Promise.withResolvers<never>();
    const end = (reason: Error): void => {
      ended.reject(reason);
      over.abort(reason);
    };
    const timer = setTimeout(() => end(new SqsSilent(withinMs)), withinMs);
    const stop = (): void => end(new Error("It was broken off, because the source is closed."));
    const signals = [this.#closing.signal, ...(signal === undefined ? [] : [signal])];
    for (const one of signals) one.addEventListener("abort", stop);
    if (signals.some(({ aborted }) => aborted)) stop();
    try {
      return await Promise.race([ended.promise, send({ abortSignal: over.signal })]);
    } finally {
      clearTimeout(timer);
      for (const one of signals) one.removeEventListener("abort", stop);
    }
  }

  close(): void {
    this.#closing.abort();
    this.client.destroy();
  }
}

class SqsSilent extends Error {
  constructor(withinMs: number) {
    super(`no answer came within ${withinMs / 1_000} s`);
    this.name = "TimeoutError";
  }
}

function clientOf(sdk: Sdk, { queue, region, endpoint }: SqsSettings): Sqs.SQSClient {
  const ofUrl = /^https?:\/\/sqs\.([a-z0-9-]+)\./.exec(queue)?.[1];
  const where = region ?? ofUrl;
  return new sdk.SQSClient({
    ...(where === undefined ? {} : { region: where }),
    // An emulator's URLs often name a host that only the emulator knows.
    ...(endpoint === undefined ? {} : { endpoint, useQueueUrlAsEndpoint: false }),
    requestHandler: { httpAgent: { maxSockets: SOCKETS }, httpsAgent: { maxSockets: SOCKETS } },
  });
}

export async function urlOf(sqs: SqsConnection, queue: string): Promise<string> {
  if (/^https?:/.test(queue)) return queue;
  const command = new sqs.sdk.GetQueueUrlCommand({ QueueName: queue });
  const { QueueUrl } = await sqs.ask((options) => sqs.client.send(command, options));
  return QueueUrl ?? "";
}
