import { randomBytes } from "node:crypto";
import { type Clock, systemClock } from "../../domain/clock.ts";
import { HINT_LIFE_MS, HINT_RETRIES, type HintResult, type HintStore } from "../../wake/port.ts";
import type { StreamConfig } from "./api-types.ts";
import { JetStream } from "./jetstream.ts";
import type { StoreSettings } from "./options.ts";
import { Lost, Requests } from "./requests.ts";
import type { Wire } from "./wire.ts";

/** After the bucket could not be had, nobody asks for it again for so long. */
const REFUSED_MS = 60_000;

interface Found {
  /** Undefined: there is no budget. */
  readonly left: number | undefined;
  readonly sequence: number;
}

/**
 * Budgets in a key-value bucket: a stream that keeps the last message of each subject, for a minute. Its values change by
 * compare-and-swap on the sequence of the message.
 */
export class NatsHints implements HintStore {
  readonly #wire: Wire;
  readonly #requests: Requests;
  readonly #js: JetStream;
  readonly #settings: StoreSettings;
  readonly #bucket: string;
  readonly #clock: Clock;
  #ready: Promise<void> | undefined;
  #refusedUntil = -Infinity;

  constructor(wire: Wire, settings: StoreSettings, clock: Clock = systemClock) {
    this.#wire = wire;
    this.#settings = settings;
    this.#clock = clock;
    this.#bucket = `${settings.prefix}-wake`;
    this.#requests = new Requests(wire, clock, `${settings.inbox}.${randomBytes(12).toString("hex")}`);
    // Nothing here is worth a second try of the same: whoever asks wakes instead.
    const { api } = settings;
    this.#js = new JetStream({ requests: this.#requests, api, clock, server: () => wire.server, repeats: false });
    // A server that was restarted may have forgotten what it kept in memory.
    wire.watch(() => (this.#ready = undefined));
  }

  /** Whether there is any use in asking. */
  get isThere(): boolean {
    return this.#wire.server.jetstream && this.#clock.monotonic() >= this.#refusedUntil;
  }

  async add(name: string, count: number): Promise<void> {
    const added = await this.#change(name, ({ left = 0 }) => left + count);
    if (added === "conflict") throw new Error(`The budget ${name} changed too often to be added to.`);
  }

  async take(name: string): Promise<HintResult> {
    return await this.#change(name, ({ left }) => {
      if (left === undefined) return "missing";
      return left <= 0 ? "empty" : left - 1;
    });
  }

  close(): void {
    this.#requests.close();
  }

  /** Writes the number that `next` makes of what is there, or gives its answer. */
  async #change(name: string, next: (found: Found) => number | HintResult): Promise<HintResult> {
    await (this.#ready ??= this.#makeBucket());
    const subject = `$KV.${this.#bucket}.${name}`;
    for (let tries = 0; tries <= HINT_RETRIES; tries += 1) {
      const found = await this.#read(subject);
      const wanted = next(found);
      if (typeof wanted !== "number") return wanted;
      const result = await this.#js.put(subject, String(wanted), { expect: found.sequence });
      if (!result.refused) return "taken";
    }
    return "conflict";
  }

  async #read(subject: string): Promise<Found> {
    const stored = await this.#js.last(this.#stream, subject);
    if (stored === undefined) return { left: undefined, sequence: 0 };
    const left = Number.parseInt(new TextDecoder().decode(stored.data), 10);
    return { left: Number.isSafeInteger(left) ? left : undefined, sequence: stored.sequence };
  }

  get #stream(): string {
    return `KV_${this.#bucket}`;
  }

  async #makeBucket(): Promise<void> {
    try {
      const made = (await this.#js.streamInfo(this.#stream)) ?? (await this.#js.createStream(this.#config()));
      // Somebody else may just be making it; then it is there the next time.
      if (made === undefined) throw new Lost(this.#stream);
      if (made.config.num_replicas > 1) this.#js.readByLeader(this.#stream);
    } catch (error) {
      this.#ready = undefined;
      if (!(error instanceof Lost)) this.#refusedUntil = this.#clock.monotonic() + REFUSED_MS;
      throw error;
    }
  }

  #config(): StreamConfig {
    const { replicas, storage } = this.#settings;
    const lifeNs = HINT_LIFE_MS * 1e6;
    return {
      name: this.#stream,
      subjects: [`$KV.${this.#bucket}.>`],
      retention: "limits",
      storage,
      num_replicas: replicas,
      discard: "new",
      allow_direct: true,
      allow_rollup_hdrs: true,
      allow_msg_ttl: false,
      allow_msg_schedules: false,
      deny_delete: true,
      deny_purge: false,
      max_msgs_per_subject: 1,
      max_age: lifeNs,
      duplicate_window: lifeNs,
    };
  }
}
