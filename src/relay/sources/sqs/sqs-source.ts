/**
 * SQS, standard and FIFO. Messages are asked for by long polls of 20 s, kept by extending their visibility, and deleted in batches. A poll
 * that nobody waits for any more is not broken off, because SQS may have handed it a message already: see `polling/poll-line.ts`.
 */
import type { ReceiveRequest, Source, SourceMessage } from "../../source.ts";
import { PollLine } from "../polling/poll-line.ts";
import { loadSdk } from "./sqs-client.ts";
import { openSqsQueue, type SqsQueue, WAIT_SECONDS } from "./sqs-queue.ts";
import type { SqsSettings } from "./sqs-settings.ts";

/** A standard queue fills ten slots with one request. */
const STANDARD = { most: 10, polls: 4 };
/**
 * One request may bring several messages of one group, which would be worked on side by side. With one message per request the group is
 * blocked by the first, as it should be.
 */
const FIFO = { most: 1, polls: 10 };

export async function openSqs(settings: SqsSettings): Promise<Source> {
  const sdk = await loadSdk();
  return new SqsSource(settings, openSqsQueue(sdk, settings));
}

class SqsSource implements Source {
  readonly name: string;
  readonly #queue: SqsQueue;
  readonly #line: PollLine;
  readonly #isFifo: boolean;

  constructor(settings: SqsSettings, queue: SqsQueue) {
    this.name = settings.name;
    this.#queue = queue;
    this.#isFifo = settings.queue.endsWith(".fifo");
    this.#line = new PollLine({
      name: settings.name,
      ...(this.#isFifo ? FIFO : STANDARD),
      waitMs: WAIT_SECONDS * 1_000,
      fetch: (request) => queue.fetch(request),
    });
  }

  async receive({ max, signal }: ReceiveRequest): Promise<readonly SourceMessage[]> {
    const first = await this.#line.receive(max, signal);
    if (!this.#isFifo || !signal.aborted || first.length === 0 || first.length >= max) return first;
    // A try on a FIFO queue that found something: there may be as much in other groups.
    const more = Array.from({ length: Math.min(max - first.length, FIFO.polls) }, () => this.#line.receive(1, signal));
    const found = await Promise.allSettled(more);
    return [...first, ...found.flatMap((one) => (one.status === "fulfilled" ? one.value : []))];
  }

  async close(): Promise<void> {
    await this.#line.close();
    this.#queue.close();
  }
}
