/**
 * Sessions. In Consul the lock-delay belongs to the session, here it belongs to the lock; so one session of ours is a few of Consul's:
 * one without a delay, which it waits with, and one for each delay that its locks ask for. They are renewed and ended together.
 */
import { type Clock, elapsedMs, instant, type Instant } from "../domain/clock.ts";
import { InvalidInput, SessionLost } from "../domain/errors.ts";
import type { Session, SessionRequest } from "../locks/port.ts";
import type { ConsulApi } from "./api.ts";
import { Unanswered } from "./http.ts";
import { type Outside, persist } from "./patience.ts";

/** What may stand in Consul under a nonce: a hold, a place in line, or what a lost reply was about. */
export interface Trace {
  readonly lock: string;
  /** A hold or a waiting call has it. If not, it is only here because a write may still arrive. */
  isUsed: boolean;
  /** Monotonic: when the last reply about it was lost. */
  doubtedAt: number | undefined;
  /** Of a hold: what happens to its key from now on is no loss. */
  stopWatching?: () => void;
}

/** The handle behind the port's `Session`. */
export class OwnSession {
  readonly id: string;
  readonly owner: string;
  readonly leaseMs: number;
  readonly expiry: SessionRequest["expiry"];
  /** Consul's, by their delay: those that are being made, too. */
  readonly parts: Map<number, Promise<string>> = new Map();
  /** Consul's that are there. */
  readonly made: Set<string> = new Set();
  /** Fires when the session is over. */
  readonly over: AbortController = new AbortController();
  /** Calls of `acquire` that have not answered yet. */
  readonly asking: Set<Promise<unknown>> = new Set();
  readonly traces: Map<string, Trace> = new Map();
  since: Instant;
  lost: SessionLost | undefined;

  constructor(id: string, { owner, leaseMs, expiry }: SessionRequest, since: Instant) {
    this.id = id;
    this.owner = owner;
    this.leaseMs = leaseMs;
    this.expiry = expiry;
    this.since = since;
    this.parts.set(0, Promise.resolve(id));
    this.made.add(id);
  }

  end(why: string): void {
    this.lost ??= new SessionLost(this.owner, why);
    this.over.abort();
  }

  /** By this process's own clocks, whatever Consul, which waits longer, would say. */
  isAlive(clock: Clock): boolean {
    if (elapsedMs(clock, this.since) >= this.leaseMs) this.end("it was not renewed in time");
    return this.lost === undefined;
  }
}

export class Sessions {
  readonly #api: ConsulApi;
  readonly #outside: Outside;

  constructor(api: ConsulApi, outside: Outside) {
    this.#api = api;
    this.#outside = outside;
  }

  async open(request: SessionRequest): Promise<OwnSession> {
    return await persist(this.#outside, "the opening of a session", async () => {
      const since = instant(this.#outside.clock);
      // One whose reply was lost holds nothing, and runs out.
      return new OwnSession(await this.#create(request, 0), request, since);
    });
  }

  /** The session of Consul's that has this delay. */
  async part(session: OwnSession, delayMs: number): Promise<string> {
    const existing = session.parts.get(delayMs);
    if (existing !== undefined) return await existing;
    const making = this.#makePart(session, delayMs);
    session.parts.set(delayMs, making);
    return await making;
  }

  async #makePart(session: OwnSession, delayMs: number): Promise<string> {
    try {
      const id = await persist(this.#outside, "the opening of a session", () => this.#create(session, delayMs));
      session.made.add(id);
      return id;
    } catch (error) {
      session.parts.delete(delayMs);
      throw error;
    }
  }

  /** Undefined: it is over. */
  async renew(session: OwnSession): Promise<Instant | undefined> {
    const answered = await persist(this.#outside, "a sign of life", async () => {
      if (session.lost !== undefined) return undefined;
      const since = instant(this.#outside.clock);
      const renewed = await Promise.all(Array.from(session.made, (id) => this.#renewPart(id)));
      return renewed.every(Boolean) ? since : undefined;
    });
    if (answered === undefined) {
      session.end("Consul had no sign of life for the length of its lease, or somebody destroyed it");
      // What the other parts hold is lost as well, and of no use to anybody.
      void this.destroy(session).catch(() => undefined);
      return undefined;
    }
    // The reply to an earlier sign of life may come after the reply to a later one.
    if (answered.monotonic > session.since.monotonic) session.since = answered;
    return answered;
  }

  /**
   * False: Consul does not have it any more. The servers do not answer renewals consistently: one that was elected a moment ago
   * and has not read its log to the end does not know sessions that live. So a no counts when a consistent read says the same.
   */
  async #renewPart(id: string): Promise<boolean> {
    if (await this.#api.renewSession(id)) return true;
    if (!(await this.#api.hasSession(id))) return false;
    throw new Unanswered("Consul did not find a session to renew, and has it", false);
  }

  /** Asks Consul. One that is over for this process is over. */
  async exists(session: OwnSession): Promise<boolean> {
    if (session.lost !== undefined) return false;
    const found = await persist(this.#outside, "a question for a session", () =>
      Promise.all(Array.from(session.made, (id) => this.#api.hasSession(id))),
    );
    return found.every(Boolean);
  }

  async destroy(session: OwnSession): Promise<void> {
    await persist(this.#outside, "the end of a session", () =>
      Promise.all(Array.from(session.made, (id) => this.#api.destroySession(id))),
    );
  }

  #create({ owner, leaseMs, expiry }: SessionRequest, lockDelayMs: number): Promise<string> {
    return this.#api.createSession({ name: owner, ttlMs: leaseMs, behavior: expiry, lockDelayMs });
  }
}

export function ownSession({ handle }: Session): OwnSession {
  if (handle instanceof OwnSession) return handle;
  throw new InvalidInput("session", handle, "a session that this connection has opened");
}
