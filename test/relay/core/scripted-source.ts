/** A source that a test fills by hand, and that remembers what it was asked and told. */
import type { GiveBackRequest, ReceiveRequest, Source, SourceMessage } from "../../../src/relay/index.ts";

export class ScriptedSource implements Source {
  readonly name: string;
  readonly told: string[] = [];
  counts: "receipts" | "deliveries" = "receipts";
  /** Messages in hand now, and the most there ever were. */
  inHand = 0;
  mostInHand = 0;
  /** Receives that wait now. */
  watches = 0;
  /** Each receive goes through here first: to fail it, or to keep it waiting. */
  before: (request: ReceiveRequest) => Promise<void> = () => Promise.resolve();
  readonly #waiting: ScriptedMessage[] = [];
  readonly #listeners = new Set<() => void>();

  constructor(name: string) {
    this.name = name;
  }

  put(id: string, more: Partial<SourceMessage> = {}): ScriptedMessage {
    const message = new ScriptedMessage(this, id, more);
    this.putBack(message);
    return message;
  }

  putBack(message: ScriptedMessage): void {
    this.#waiting.push(message);
    for (const listener of this.#listeners) listener();
  }

  async receive(request: ReceiveRequest): Promise<readonly SourceMessage[]> {
    await this.before(request);
    const { max, signal } = request;
    if (this.#waiting.length === 0 && !signal.aborted) {
      this.watches += 1;
      await new Promise<void>((resolve) => {
        this.#listeners.add(resolve);
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
      this.watches -= 1;
    }
    const messages = this.#waiting.splice(0, max);
    for (const message of messages) message.receivedAgain();
    this.inHand += messages.length;
    this.mostInHand = Math.max(this.mostInHand, this.inHand);
    return messages;
  }

  close(): Promise<void> {
    this.told.push("closed");
    return Promise.resolve();
  }
}

export class ScriptedMessage implements SourceMessage {
  readonly id: string;
  readonly data: Uint8Array;
  readonly contentType: string | undefined;
  readonly attributes: Readonly<Record<string, string>>;
  readonly key: string | undefined;
  readonly sentAt: number | undefined = 1_700_000_000_000;
  readonly fence: number | undefined;
  readonly holdMs: number;
  readonly bury: ((reason: string) => Promise<void>) | undefined;
  readonly losing: AbortController = new AbortController();
  attempt: number | undefined;
  extensions = 0;
  /** Rejects what the source is told, for as long as it is set. */
  refusal: Error | undefined;
  readonly #source: ScriptedSource;

  constructor(source: ScriptedSource, id: string, more: Partial<SourceMessage>) {
    this.#source = source;
    this.id = id;
    this.data = more.data ?? Buffer.from(JSON.stringify({ id }));
    this.contentType = more.contentType ?? "application/json";
    this.attributes = more.attributes ?? {};
    this.key = more.key;
    this.fence = more.fence;
    this.holdMs = more.holdMs ?? 0;
    this.attempt = "attempt" in more ? more.attempt : 0;
    this.bury = "bury" in more ? more.bury : (reason) => this.#end(`buried ${id}: ${reason}`);
  }

  get lost(): AbortSignal {
    return this.losing.signal;
  }

  receivedAgain(): void {
    if (this.attempt !== undefined) this.attempt += 1;
  }

  extend(): Promise<void> {
    this.extensions += 1;
    return this.refusal === undefined ? Promise.resolve() : Promise.reject(this.refusal);
  }

  async acknowledge(): Promise<void> {
    await this.#end(`acknowledged ${this.id}`);
  }

  async giveBack({ delayMs, countAttempt }: GiveBackRequest): Promise<void> {
    await this.#end(`back ${this.id}${countAttempt ? "" : " uncounted"}${delayMs === 0 ? "" : " later"}`);
    if (delayMs === 0) this.#source.putBack(this);
  }

  #end(what: string): Promise<void> {
    if (this.refusal !== undefined) return Promise.reject(this.refusal);
    this.#source.told.push(what);
    this.#source.inHand -= 1;
    return Promise.resolve();
  }
}
