/** Engines on real servers, through connections that lose replies when they are told to. */
import type { TestContext } from "node:test";
import { openConnection, wireOf } from "../../src/engines/nats/connection.ts";
import { NatsEngine } from "../../src/engines/nats/engine.ts";
import type { StoreOptions } from "../../src/engines/nats/index.ts";
import type { Delivery, Subscription, Wire } from "../../src/engines/nats/wire.ts";

export async function openNats(
  context: TestContext,
  ports: readonly number[],
  options: StoreOptions = {},
): Promise<NatsEngine> {
  const { engine } = await openLossy(context, ports, options);
  return engine;
}

export async function openLossy(
  context: TestContext,
  ports: readonly number[],
  options: StoreOptions = {},
): Promise<LossyHandle> {
  const handle = await connectLossy(ports, options);
  context.after(() => handle.engine.close());
  return handle;
}

export interface LossyHandle {
  readonly engine: NatsEngine;
  readonly wire: LossyWire;
}

export async function connectLossy(ports: readonly number[], options: StoreOptions = {}): Promise<LossyHandle> {
  const connection = await openConnection({ servers: ports.map((port) => `127.0.0.1:${port}`) });
  const wire = new LossyWire(wireOf(connection, true));
  const engine = new NatsEngine({ wire, random, options });
  return { engine, wire };
}

function random(): number {
  return Math.random();
}

/** Everything that is sent arrives; replies that are to be lost do not. */
export class LossyWire implements Wire {
  readonly server: Wire["server"];
  readonly #inner: Wire;
  readonly #lose: { readonly part: string; readonly meanwhile: () => Promise<void> }[] = [];
  readonly #losing = new Map<string, () => Promise<void>>();
  #dead = false;
  #watchers: ((up: boolean) => void)[] = [];

  constructor(inner: Wire) {
    this.#inner = inner;
    this.server = inner.server;
  }

  /** How many were. */
  lost = 0;

  /** The reply to the next message on a subject that has this in it is lost; `meanwhile` happens before that is noticed. */
  loseReply(part: string, meanwhile: () => Promise<void> = () => Promise.resolve()): void {
    this.#lose.push({ part, meanwhile });
  }

  /** From now on nothing gets out or in, as if the process had been killed. */
  kill(): void {
    this.#dead = true;
  }

  /** Whatever was to be lost from now on is not. */
  forget(): void {
    this.#lose.length = 0;
  }

  publish: Wire["publish"] = (subject, data, options) => {
    if (this.#dead) return;
    const at = this.#lose.findIndex(({ part }) => subject.includes(part));
    const reply = options?.reply;
    if (reply !== undefined)
      for (const { meanwhile } of this.#lose.splice(at, at === -1 ? 0 : 1)) this.#losing.set(reply, meanwhile);
    this.#inner.publish(subject, data, options);
  };

  subscribe(subject: string, receive: (delivery: Delivery) => void): Subscription {
    return this.#inner.subscribe(subject, (delivery) => {
      if (this.#dead) return;
      const meanwhile = this.#losing.get(delivery.subject);
      if (meanwhile === undefined) return receive(delivery);
      this.#losing.delete(delivery.subject);
      this.lost += 1;
      void meanwhile().then(() => this.#break());
    });
  }

  /** What is lost is known at once, as when a connection breaks: nobody has to wait for it. */
  #break(): void {
    for (const watcher of this.#watchers) watcher(false);
    for (const watcher of this.#watchers) watcher(true);
  }

  watch(listener: (up: boolean) => void): void {
    this.#watchers.push(listener);
    this.#inner.watch(listener);
  }

  deny(listener: Parameters<NonNullable<Wire["deny"]>>[0]): void {
    this.#inner.deny?.(listener);
  }

  async close(): Promise<void> {
    this.#watchers = [];
    await this.#inner.close();
  }
}
