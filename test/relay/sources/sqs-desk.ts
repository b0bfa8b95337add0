/** An SQS of one's own: the maintained emulator in this process, spoken to by the official client. */
import { randomUUID } from "node:crypto";
import type { TestContext } from "node:test";
import { DeleteMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
import { type FauxqsServer, startFauxqs } from "fauxqs";
import type { Source } from "../../../src/relay/source.ts";
import type { SqsSettings } from "../../../src/relay/sources/sqs/sqs-settings.ts";
import { openSqs } from "../../../src/relay/sources/sqs/sqs-source.ts";

export const REGION = "us-west-2";

/** The emulator does not check them, but the client wants some. */
process.env["AWS_ACCESS_KEY_ID"] ??= "test";
process.env["AWS_SECRET_ACCESS_KEY"] ??= "test";

export class SqsDesk {
  readonly server: FauxqsServer;

  constructor(server: FauxqsServer) {
    this.server = server;
  }

  /** A new queue, and the settings of a source on it. */
  queue(options: { readonly fifo?: boolean; readonly attributes?: Record<string, string> } = {}): SqsSettings {
    const name = `queue-${randomUUID()}${options.fifo === true ? ".fifo" : ""}`;
    const fifo = options.fifo === true ? { FifoQueue: "true", ContentBasedDeduplication: "true" } : {};
    this.server.createQueue(name, { region: REGION, attributes: { ...fifo, ...options.attributes } });
    return {
      name,
      queue: name,
      region: REGION,
      endpoint: this.server.address,
      visibilityMs: 30_000,
      deadLetterQueue: undefined,
    };
  }

  send(queue: string, body: string, more: Parameters<FauxqsServer["sendMessage"]>[2] = {}): string {
    return this.server.sendMessage(queue, body, { region: REGION, ...more }).messageId;
  }

  /** What somebody else with the same receipt does. */
  async deleteHidden(queue: string): Promise<void> {
    const found = this.server.inspectQueue(queue);
    const client = new SQSClient({ region: REGION, endpoint: this.server.address, useQueueUrlAsEndpoint: false });
    for (const { receiptHandle } of found?.messages.inflight ?? [])
      await client.send(new DeleteMessageCommand({ QueueUrl: found?.url, ReceiptHandle: receiptHandle }));
    client.destroy();
  }

  counts(queue: string): { readonly ready: number; readonly hidden: number } {
    const messages = this.server.inspectQueue(queue)?.messages;
    return { ready: messages?.ready.length ?? 0, hidden: messages?.inflight.length ?? 0 };
  }
}

export async function openSqsDesk(): Promise<SqsDesk & AsyncDisposable> {
  const server = await startFauxqs({ port: 0, logger: false, defaultRegion: REGION });
  return Object.assign(new SqsDesk(server), { [Symbol.asyncDispose]: () => server.stop() });
}

/** A source that is closed when the test ends. */
export async function sqsSourceOf(t: TestContext, settings: SqsSettings): Promise<Source> {
  const source = await openSqs(settings);
  t.after(() => source.close());
  return source;
}
