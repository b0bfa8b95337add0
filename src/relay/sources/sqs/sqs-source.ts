/**
 * SQS, standard and FIFO. Messages are asked for by long polls of 20 s, kept by extending their visibility, and deleted
 * in batches. A poll that nobody waits for any more is not broken off, because SQS may have handed it a message
 * already: see `polling/poll-line.ts`.
 */
import { checkOptions } from "../../../domain/options.ts";
import type { ReceiveRequest, Source, SourceMessage } from "../../source.ts";
import { PollLine } from "../polling/poll-line.ts";
import { warmUp } from "../polling/warm-up.ts";
import { loadSdk } from "./sqs-client.ts";
import { openSqsQueue, type SqsQueue, WAIT_SECONDS } from "./sqs-queue.ts";
import { SQS_SETTINGS, type SqsSettings } from "./sqs-settings.ts";

/** As many as SQS gives. */
const MOST = 10;
/** Enough for FIFO queues, where each poll brings one message. */
const POLLS = 10;

export async function openSqs(settings: SqsSettings): Promise<Source> {
  checkOptions(settings, SQS_SETTINGS);
  const queue = openSqsQueue(await loadSdk(), settings);
  await warmUp(() => queue.find());
  return new SqsSource(settings, queue);
}

class SqsSource implements Source {
  readonly name: string;
  readonly #queue: SqsQueue;
  readonly #line: PollLine;

  constructor(settings: SqsSettings, queue: SqsQueue) {
    this.name = settings.name;
    this.#queue = queue;
    this.#line = new PollLine({
      name: settings.name,
      most: MOST,
      polls: POLLS,
      waitMs: WAIT_SECONDS * 1_000,
      isOneByOne: () => settings.queue.endsWith(".fifo"),
      fetch: (request) => queue.fetch(request),
    });
  }

  get hasDeadLetters(): boolean | undefined {
    return this.#queue.hasDeadLetters();
  }

  receive({ max, signal }: ReceiveRequest): Promise<readonly SourceMessage[]> {
    return this.#line.receive(max, signal);
  }

  check(): Promise<void> {
    return this.#queue.check();
  }

  async close(): Promise<void> {
    await this.#line.close();
    this.#queue.close();
  }
}
