import { BatonError } from "../../../domain/errors.ts";

/** Asks one URL and gives the JSON behind it. */
export type GetJson = (url: URL) => Promise<unknown>;

/** Where one application wants one topic. It is asked once, and again when that was wrong. */
export class Subscription {
  readonly #find: () => Promise<URL>;
  #found: Promise<URL> | undefined;

  constructor(getJson: GetJson, base: string, pubsub: string, topic: string) {
    this.#find = () => findSubscription(getJson, base, pubsub, topic);
  }

  async url(): Promise<URL> {
    this.#found ??= this.#find();
    const asked = this.#found;
    try {
      return await asked;
    } catch (error) {
      // Perhaps it is not up yet: the next message asks again.
      this.#forget(asked);
      throw error;
    }
  }

  /** There was nothing at this URL: the application may have another one now. */
  async urlInsteadOf(gone: URL): Promise<URL> {
    const asked = this.#found;
    if (asked !== undefined && (await asked.catch(() => gone)) === gone) this.#forget(asked);
    return await this.url();
  }

  #forget(asked: Promise<URL>): void {
    if (this.#found === asked) this.#found = undefined;
  }
}

/**
 * Where an application wants the messages of a topic, as it tells Dapr: `GET /dapr/subscribe`. Rules that choose a path
 * by the event's content are Dapr's own language; of those the default is taken.
 */
async function findSubscription(getJson: GetJson, base: string, pubsub: string, topic: string): Promise<URL> {
  const answer = await getJson(new URL("/dapr/subscribe", base));
  const subscriptions: readonly unknown[] = Array.isArray(answer) ? answer : [];
  for (const one of subscriptions) {
    if (field(one, "pubsubname") !== pubsub || field(one, "topic") !== topic) continue;
    const path = field(one, "route") ?? field(field(one, "routes"), "default");
    if (typeof path === "string") return new URL(path.startsWith("/") ? path : `/${path}`, base);
  }
  throw new BatonError(
    "NOT_FOUND",
    `The application at ${base} has no subscription to topic ${topic} of ${pubsub}. Its messages stay where they are. ` +
      "Subscribe in the application, or name the URL in the configuration.",
  );
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
