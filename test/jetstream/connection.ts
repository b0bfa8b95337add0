/** A client's connection to the simulated server, and everything that can happen to one. */
import type { Delivery, PublishOptions, ServerFacts, Subscription, Wire } from "../../src/engines/nats/wire.ts";
import { CALM_LINE, type LineFaults } from "./faults.ts";
import { toDelivery } from "./headers.ts";
import { Line } from "./line.ts";
import type { Packet, Session, SimulatedServer } from "./server.ts";

export interface ConnectionOptions {
  readonly faults?: LineFaults;
  /** Runs what reaches the client, now or later: a process that is stopped hears nothing until it goes on. */
  readonly hand?: (callback: () => void) => void;
}

export interface CutOptions {
  /** Until then, what the client sends goes nowhere. */
  readonly clientNoticesMs?: number;
  /** Until then, the server sends to nobody and takes it for delivered. */
  readonly serverNoticesMs?: number;
}

export interface KillOptions {
  readonly serverNoticesMs?: number;
  /** What becomes of messages that were on their way to the server. */
  readonly sent?: "lost" | "arrives";
}

interface Subscriber {
  readonly subject: string;
  readonly receive: (delivery: Delivery) => void;
}

export class Connection implements Wire {
  readonly server: ServerFacts;
  /** May be exchanged at any time. */
  faults: LineFaults;
  readonly #hub: SimulatedServer;
  readonly #hand: (callback: () => void) => void;
  readonly #toServer: Line;
  readonly #fromServer: Line;
  readonly #subscribers = new Map<number, Subscriber>();
  readonly #listeners: ((up: boolean) => void)[] = [];
  #session: Session | undefined;
  #backlog: Packet[] = [];
  #subscribed = 0;
  /** What the client believes. */
  #isUp = true;
  #isOver = false;

  constructor(hub: SimulatedServer, { faults, hand }: ConnectionOptions) {
    this.#hub = hub;
    this.server = hub.facts;
    this.faults = faults ?? CALM_LINE;
    this.#hand = hand ?? ((callback) => callback());
    this.#toServer = new Line(hub.clock);
    this.#fromServer = new Line(hub.clock);
    this.#session = this.#open();
  }

  /** Whether what is sent can arrive. */
  get isLinked(): boolean {
    return this.#session !== undefined;
  }

  publish(subject: string, data: Uint8Array | string, { reply = "", headers }: PublishOptions = {}): void {
    if (this.#isOver) return;
    const body = Buffer.from(data);
    if (body.length + (headers?.length ?? 0) > this.server.maxPayload) throw new Error("The message is too large.");
    const packet: Packet = {
      subject,
      reply,
      data: body,
      headers: headers === undefined ? undefined : Buffer.from(headers, "latin1"),
    };
    if (!this.#isUp) this.#backlog.push(packet);
    else this.#send(packet);
  }

  subscribe(subject: string, receive: (delivery: Delivery) => void): Subscription {
    this.#subscribed += 1;
    const id = this.#subscribed;
    this.#subscribers.set(id, { subject, receive });
    this.#tell((session) => session.subscriptions.set(id, subject));
    return {
      unsubscribe: () => {
        this.#subscribers.delete(id);
        this.#tell((session) => session.subscriptions.delete(id));
      },
      drain: () => {
        // Its confirmation comes behind all that the server has sent to it.
        this.#tell((session) => {
          session.subscriptions.delete(id);
          this.#fromServer.put(0, () => this.#hand(() => this.#subscribers.delete(id)));
        });
        if (this.#session === undefined) this.#subscribers.delete(id);
      },
    };
  }

  watch(listener: (up: boolean) => void): void {
    this.#listeners.push(listener);
  }

  /** What was published before still goes out; nothing comes in. */
  close(): Promise<void> {
    if (this.#isOver) return Promise.resolve();
    this.#isOver = true;
    this.#subscribers.clear();
    this.#fromServer.clear();
    this.#backlog = [];
    this.#hub.forget(this);
    return new Promise((resolve) => {
      const session = this.#session;
      this.#session = undefined;
      this.#toServer.put(0, () => {
        if (session !== undefined) this.#hub.drop(session);
        this.#hand(resolve);
      });
    });
  }

  /** The process dies: nothing more in or out, unless the system still sends what it was given. */
  kill({ serverNoticesMs = 0, sent = "lost" }: KillOptions = {}): void {
    this.#isOver = true;
    this.#subscribers.clear();
    this.#listeners.length = 0;
    this.#backlog = [];
    this.#hub.forget(this);
    this.#unlink(serverNoticesMs, sent);
  }

  /** What is on its way, in both directions, is lost. */
  cut({ clientNoticesMs = 0, serverNoticesMs = 0 }: CutOptions = {}): void {
    if (this.#session === undefined || this.#isOver) return;
    this.#unlink(serverNoticesMs);
    if (clientNoticesMs === 0) this.#noticeLoss();
    else this.#hub.clock.setTimer(clientNoticesMs, () => (this.isLinked ? undefined : this.#noticeLoss()));
  }

  /** As a new connection, with the subscriptions of the old one, and with what was published in the meantime. */
  restore(): void {
    if (this.#session !== undefined || this.#isOver) return;
    this.#noticeLoss();
    this.#session = this.#open();
    for (const [id, { subject }] of this.#subscribers) this.#tell((session) => session.subscriptions.set(id, subject));
    const backlog = this.#backlog;
    this.#backlog = [];
    for (const packet of backlog) this.#send(packet);
    this.#isUp = true;
    this.#announce(true);
  }

  #open(): Session {
    const session: Session = {
      subscriptions: new Map<number, string>(),
      deliver: (id, packet) => {
        // The server may not have noticed that this one has ended.
        if (this.#session !== session || this.faults.loses("from server", packet)) return;
        const delayMs = this.faults.delayMs("from server", packet);
        this.#fromServer.put(delayMs, () => this.#hand(() => this.#receive(id, packet)));
      },
    };
    this.#hub.open(session);
    return session;
  }

  #receive(id: number, { subject, reply, data, headers }: Packet): void {
    this.#subscribers.get(id)?.receive(toDelivery(subject, reply, data, headers));
  }

  #send(packet: Packet): void {
    if (this.#session === undefined || this.faults.loses("to server", packet)) return;
    this.#toServer.put(this.faults.delayMs("to server", packet), () => this.#hub.receive(packet));
  }

  #tell(change: (session: Session) => void): void {
    const session = this.#session;
    if (session !== undefined) this.#toServer.put(0, () => change(session));
  }

  #unlink(serverNoticesMs: number, sent: "lost" | "arrives" = "lost"): void {
    if (sent === "lost") this.#toServer.clear();
    this.#fromServer.clear();
    const session = this.#session;
    this.#session = undefined;
    if (session === undefined) return;
    if (serverNoticesMs === 0) this.#hub.drop(session);
    else this.#hub.clock.setTimer(serverNoticesMs, () => this.#hub.drop(session));
  }

  #noticeLoss(): void {
    if (!this.#isUp || this.#isOver) return;
    this.#isUp = false;
    this.#announce(false);
  }

  #announce(up: boolean): void {
    this.#hand(() => {
      for (const listener of this.#listeners) listener(up);
    });
  }
}
