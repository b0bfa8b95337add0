/**
 * What the protocol needs of a connection: to send, to listen, and to hear when the connection comes and goes. Everything
 * above this line runs unchanged on a real connection and on a simulated JetStream.
 */
export interface Wire {
  readonly server: ServerFacts;

  /** Sends, now or when the connection is back. Never says whether it arrived: that is what replies are for. */
  publish(subject: string, data: Uint8Array | string, options?: PublishOptions): void;

  subscribe(subject: string, receive: (delivery: Delivery) => void): Subscription;

  /** Calls back with false when the connection is lost and with true when it is there again. */
  watch(listener: (up: boolean) => void): void;

  /** Calls back with a subject that the server does not let this connection use, where a server can refuse one. */
  deny?(listener: (denied: Denied) => void): void;

  close(): Promise<void>;
}

export interface Denied {
  readonly operation: "publish" | "subscription";
  readonly subject: string;
}

export interface PublishOptions {
  readonly reply?: string;
  /** A header block as the protocol has it, from `NATS/1.0` to the empty line, in ASCII. */
  readonly headers?: string;
}

export interface Delivery {
  readonly subject: string;
  readonly reply: string;
  readonly data: Uint8Array;
  /** Of a message from the server about a request: 404, 408, 409, 503, …; 100 for a sign of life; 0 for everything else. */
  readonly status: number;
  /** The text that comes with a status. */
  readonly description: string;
  header(name: string): string | undefined;
}

export interface Subscription {
  /** Nothing more is heard, from now on. */
  unsubscribe(): void;

  /** Nothing more is asked for: what the server sent before it knew of that is still heard. */
  drain(): void;
}

export interface ServerFacts {
  /** Of the server that is connected now: another one may answer after a reconnection. */
  readonly name?: string | undefined;
  /** Not part of a cluster. */
  readonly alone?: boolean;
  readonly version: string;
  readonly maxPayload: number;
  readonly jetstream: boolean;
}
