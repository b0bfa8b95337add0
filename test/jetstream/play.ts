/** Plays steps on one server, real or simulated, and writes down the answers with everything left out that may differ. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Delivery, Wire } from "../../src/engines/nats/wire.ts";
import { type Header, writeHeaders } from "./headers.ts";
import type { Publish, Step } from "./script.ts";
import { virtualServer } from "./virtual-server.ts";

/** A server that steps can be played on. */
export interface Stage {
  readonly wire: Wire;
  wall(): number;
  /** Comes back when there is an answer, or none to be expected any more. */
  settle(answered: Promise<void>): Promise<void>;
  wait(ms: number): Promise<void>;
}

export type Answer = readonly unknown[] | "silence";

/** Headers that an answer may have. */
const HEADERS = [
  "Nats-Stream",
  "Nats-Subject",
  "Nats-Sequence",
  "Nats-Num-Pending",
  "Nats-Last-Sequence",
  "Nats-UpTo-Sequence",
  "Nats-Pending-Messages",
  "Nats-Pending-Bytes",
  "Nats-Last-Consumer",
  "Nats-Rollup",
  "Nats-TTL",
  "Nats-Schedule-Target",
  "Nats-Scheduler",
  "Nats-Schedule-Next",
  "Mine",
];
/** Moments; and how far a consumer has read the stream, which depends on how far the real one reads ahead. */
const MOMENTS = ["created", "ts", "first_ts", "last_ts", "time", "last_active", "pause_until", "pause_remaining"];
const LEFT_OUT = new Set([...MOMENTS, "cluster", "stream_seq"]);
const PATIENCE_MS = 2_000;

export function simulatedStage(): Stage {
  const { server, clock, pass } = virtualServer();
  return {
    wire: server.connect(),
    wall: () => clock.wall(),
    settle: () => Promise.resolve(pass(0)),
    wait: (ms) => Promise.resolve(pass(ms)),
  };
}

export function realStage(wire: Wire): Stage {
  return {
    wire,
    wall: () => Date.now(),
    async settle(answered) {
      const patience = new AbortController();
      const givenUp = sleep(PATIENCE_MS, undefined, { signal: patience.signal }).catch(() => undefined);
      await Promise.race([answered, givenUp]);
      patience.abort();
    },
    wait: (ms) => sleep(ms),
  };
}

export class Player {
  readonly #stage: Stage;
  readonly #prefix: string;
  readonly #deliveries: string[] = [];
  readonly #background: unknown[] = [];
  #asked = 0;

  constructor(stage: Stage, prefix: string) {
    this.#stage = stage;
    this.#prefix = prefix;
  }

  async play(step: Step): Promise<Answer> {
    switch (step.kind) {
      case "publish":
        return this.#ask(step.subject, step.data, await this.#headersOf(step));
      case "batch":
        return this.#batch(step);
      case "api":
        return this.#ask(
          `$JS.API.${step.subject}`,
          step.body === undefined ? "" : JSON.stringify(step.body),
          [],
          step.many,
        );
      case "pull":
        return this.#pull(step);
      case "settle":
        return this.#settle(step);
      case "wait":
        await this.#stage.wait(step.ms);
        return this.#background.splice(0);
      case "pause": {
        const until = new Date(this.#stage.wall() + step.ms).toISOString();
        const subject = `$JS.API.CONSUMER.PAUSE.${step.stream}.${step.consumer}`;
        return this.#ask(subject, JSON.stringify({ pause_until: until }), []);
      }
      case "listen":
        this.#listen(step);
        return [];
    }
  }

  /** What it expects to be the last is right or wrong by as much as the step says. */
  async #headersOf(step: Publish): Promise<readonly Header[]> {
    const headers: Header[] = [...(step.headers ?? [])];
    if (step.expect !== undefined) {
      const { among, off } = step.expect;
      const asked = JSON.stringify({ last_by_subj: among ?? step.subject });
      const [stream = ""] = step.subject.split(".");
      const [last] = await this.#deliveriesOf(`$JS.API.DIRECT.GET.${stream}`, asked, []);
      const sequence = Number(last?.header("Nats-Sequence") ?? 0);
      headers.push(["Nats-Expected-Last-Subject-Sequence", String(Math.max(0, sequence + off))]);
      if (among !== undefined) headers.push(["Nats-Expected-Last-Subject-Sequence-Subject", among]);
    }
    if (step.scheduleInMs !== undefined) {
      headers.push(["Nats-Schedule", `@at ${new Date(this.#stage.wall() + step.scheduleInMs).toISOString()}`]);
    }
    return headers;
  }

  /** What the last is answered. */
  async #batch({ id, publishes, without }: Step & { readonly kind: "batch" }): Promise<Answer> {
    const all = await Promise.all(
      publishes.map(async (publish, place) => {
        const headers: Header[] = [
          ...(await this.#headersOf(publish)),
          ["Nats-Batch-Id", id],
          ["Nats-Batch-Sequence", String(place + 1)],
        ];
        if (place === publishes.length - 1) headers.push(["Nats-Batch-Commit", "1"]);
        return { ...publish, headers };
      }),
    );
    const last = all.pop();
    for (const [place, { subject, data, headers }] of all.entries())
      if (place !== without)
        this.#stage.wire.publish(subject, data, { headers: Buffer.from(writeHeaders(headers)).toString("latin1") });
    return last === undefined ? [] : this.#ask(last.subject, last.data, last.headers);
  }

  async #pull({ stream, consumer, batch }: Step & { readonly kind: "pull" }): Promise<Answer> {
    const subject = `$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`;
    const got = await this.#deliveriesOf(subject, JSON.stringify({ batch, no_wait: true }), [], batch);
    for (const { reply } of got) if (reply !== "") this.#deliveries.push(reply);
    return normal(got);
  }

  /** Counted from the end if the number is negative. */
  async #settle({ which, how, forget }: Step & { readonly kind: "settle" }): Promise<Answer> {
    const place = which < 0 ? this.#deliveries.length + which : which % Math.max(1, this.#deliveries.length);
    const reply = this.#deliveries[place];
    if (reply === undefined) return [];
    if (forget) this.#deliveries.splice(place, 1);
    return this.#ask(reply, how, []);
  }

  /** Answers come whenever they come, and are told with the next wait. */
  #listen({ subject, body }: Step & { readonly kind: "listen" }): void {
    const inbox = this.#inbox();
    this.#stage.wire.subscribe(inbox, (delivery) => {
      if (delivery.reply !== "") this.#deliveries.push(delivery.reply);
      this.#background.push(...normal([delivery]));
    });
    this.#stage.wire.publish(subject, JSON.stringify(body), { reply: inbox });
  }

  async #ask(subject: string, data: string, headers: readonly Header[], many = 1): Promise<Answer> {
    const got = await this.#deliveriesOf(subject, data, headers, many);
    return got.length === 0 ? "silence" : normal(got);
  }

  /** Until there are as many as asked for, or one that is a status. */
  async #deliveriesOf(subject: string, data: string, headers: readonly Header[], many = 1): Promise<Delivery[]> {
    const { wire } = this.#stage;
    const inbox = this.#inbox();
    const got: Delivery[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    const subscription = wire.subscribe(inbox, (delivery) => {
      got.push(delivery);
      if (got.length >= many || delivery.status !== 0) resolve();
    });
    wire.publish(subject, data, {
      reply: inbox,
      ...(headers.length === 0 ? {} : { headers: Buffer.from(writeHeaders(headers)).toString("latin1") }),
    });
    await this.#stage.settle(promise);
    subscription.unsubscribe();
    return got;
  }

  #inbox(): string {
    this.#asked += 1;
    return `_INBOX.${this.#prefix}.${this.#asked}`;
  }
}

function normal(deliveries: readonly Delivery[]): unknown[] {
  return deliveries.map((delivery) => {
    const { subject, reply, data, status, description } = delivery;
    const text = Buffer.from(data).toString();
    const words = reply.split(".");
    // The moment at which the message was stored; and how many come after it, which the real one knows roughly.
    if (words[1] === "ACK") words.splice(7);
    return {
      subject: subject.startsWith("_INBOX") ? "" : subject,
      reply: words.join("."),
      status,
      description,
      headers: HEADERS.map((name) => [name, delivery.header(name)]).filter(([, value]) => value !== undefined),
      data: text.startsWith("{") ? readJson(text) : text,
    };
  });
}

function readJson(text: string): unknown {
  return JSON.parse(text, (name, value: unknown) => (LEFT_OUT.has(name) ? undefined : value)) as unknown;
}
