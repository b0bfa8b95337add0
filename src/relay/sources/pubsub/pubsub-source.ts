/**
 * Google Pub/Sub by pulls. What one pull brings is held by moving its deadline; a pull that nobody waits for any more
 * is not broken off, because it may have been given a message already: see `polling/poll-line.ts`.
 */
import { checkOptions } from "../../../domain/options.ts";
import type { ReceiveRequest, Source, SourceMessage } from "../../source.ts";
import { PollLine } from "../polling/poll-line.ts";
import { warmUp } from "../polling/warm-up.ts";
import { loadSdk } from "./pubsub-client.ts";
import { PUBSUB_SETTINGS, type PubsubSettings } from "./pubsub-settings.ts";
import { openSubscription, type Subscription } from "./pubsub-subscription.ts";
import { WAIT_MS } from "./pull.ts";

/** Pub/Sub would give a thousand; so many are acknowledged with one request. */
const MOST = 100;
const POLLS = 10;

export async function openPubsub(settings: PubsubSettings): Promise<Source> {
  checkOptions(settings, PUBSUB_SETTINGS);
  const subscription = openSubscription(await loadSdk(), settings);
  await warmUp(() => subscription.find());
  return new PubsubSource(settings, subscription);
}

class PubsubSource implements Source {
  readonly name: string;
  readonly #subscription: Subscription;
  readonly #line: PollLine;

  constructor(settings: PubsubSettings, subscription: Subscription) {
    this.name = settings.name;
    this.#subscription = subscription;
    this.#line = new PollLine({
      name: settings.name,
      most: MOST,
      polls: POLLS,
      waitMs: WAIT_MS,
      isOneByOne: () => subscription.isOrdered(),
      fetch: (request) => subscription.fetch(request),
    });
  }

  get hasDeadLetters(): boolean | undefined {
    return this.#subscription.hasDeadLetters();
  }

  receive({ max, signal }: ReceiveRequest): Promise<readonly SourceMessage[]> {
    return this.#line.receive(max, signal);
  }

  check(): Promise<void> {
    return this.#subscription.check();
  }

  async close(): Promise<void> {
    await this.#line.close();
    await this.#subscription.close();
  }
}
