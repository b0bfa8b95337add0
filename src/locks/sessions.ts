import { type Clock, elapsedMs, instant, type Instant } from "../domain/clock.ts";
import { InvalidInput, OutcomeUnknown, SessionLost } from "../domain/errors.ts";
import type { Session, SessionRequest } from "./port.ts";
import type { Cell, Register } from "./register.ts";

const PREFIX = "session/";
/** Outlives its session's cell by the delay after loss: when it is gone, so is the delay. */
const DELAY_PREFIX = "delay/";
/** Each try asks the store twice. A store that answers none of them is better waited for. */
const MOST_TRIES = 4;

/** A session of this process: the handle behind the port's `Session`. */
export class OwnSession {
  readonly id: string;
  readonly owner: string;
  readonly leaseMs: number;
  readonly expiry: SessionRequest["expiry"];
  /** Fires when the session is over. */
  readonly over: AbortController = new AbortController();
  /** Calls of `acquire` that have not answered yet. */
  readonly asking: Set<Promise<unknown>> = new Set();
  /** What may stand under this session in the store, by nonce: what it holds, where it waits, and what replies were lost about. */
  readonly traces: Map<string, Trace> = new Map();
  version: number;
  since: Instant;
  lost: SessionLost | undefined;
  /** Its owner ends it: what it held is being freed. */
  isClosed = false;
  /** The longest delay after loss that it asked for. */
  delayMs = 0;
  delayVersion = 0;

  constructor(id: string, request: SessionRequest, version: number, since: Instant) {
    this.id = id;
    this.owner = request.owner;
    this.leaseMs = request.leaseMs;
    this.expiry = request.expiry;
    this.version = version;
    this.since = since;
  }

  end(why: string): void {
    this.lost ??= new SessionLost(this.owner, why);
    this.over.abort();
  }

  /** The store keeps a session at least for its lease, so inside of it nobody has to be asked. */
  isCertain(clock: Clock): boolean {
    return elapsedMs(clock, this.since) < this.leaseMs;
  }
}

export interface Trace {
  readonly lock: string;
  /** A hold or a waiting call has it. If not, it is only here because a write may still arrive. */
  isUsed: boolean;
  /** Monotonic: when the last reply about it was lost. */
  doubtedAt: number | undefined;
  /** How it was to be released. */
  retireMs: number | undefined;
}

/** What a session's cell says: enough to guess when it will be gone. */
interface Sign {
  readonly owner: string;
  readonly leaseMs: number;
  readonly at: number;
}

/** As much of a holder as tells whether somebody has to wait because it vanished. */
interface MaybeDelayed {
  readonly session: string;
  readonly delayMs: number;
}

/** The cells of the sessions, which the store removes by itself. */
export class Sessions {
  readonly #register: Register;
  readonly #clock: Clock;

  constructor(register: Register, clock: Clock) {
    this.#register = register;
    this.#clock = clock;
  }

  async open(id: string, request: SessionRequest): Promise<OwnSession> {
    for (let attempt = 1; ; attempt += 1) {
      const since = instant(this.#clock);
      try {
        const version = await this.#write(id, 0, request);
        if (version !== undefined) return new OwnSession(id, request, version, since);
        // An earlier try has arrived after all. It may be about to run out: only a sign of life tells.
        const session = new OwnSession(id, request, (await this.read(id))?.version ?? 0, since);
        if ((await this.renew(session)) !== undefined) return session;
      } catch (error) {
        if (!(error instanceof OutcomeUnknown) || attempt >= MOST_TRIES) throw error;
      }
    }
  }

  /** Undefined: it is over. Only a write that was answered counts as a sign of life. */
  async renew(session: OwnSession): Promise<Instant | undefined> {
    if (session.delayMs > 0) await this.writeDelay(session);
    for (let attempt = 1; ; attempt += 1) {
      if (session.lost !== undefined) return undefined;
      const since = instant(this.#clock);
      try {
        const version = await this.#write(session.id, session.version, session);
        if (version !== undefined) {
          session.version = Math.max(session.version, version);
          // The reply to an earlier sign of life may come after the reply to a later one.
          if (since.monotonic > session.since.monotonic) session.since = since;
          return since;
        }
      } catch (error) {
        if (!(error instanceof OutcomeUnknown) || attempt >= MOST_TRIES) throw error;
      }
      const cell = await this.read(session.id);
      if (cell === undefined) {
        session.end("the store had no sign of life for the length of its lease");
        return undefined;
      }
      session.version = Math.max(session.version, cell.version);
    }
  }

  /**
   * Written before each sign of life, so that the delay is never over before its time; a lease more, because the sign of life
   * may come just in time.
   */
  async writeDelay(session: OwnSession): Promise<void> {
    const name = DELAY_PREFIX + session.id;
    const ttlMs = 2 * session.leaseMs + session.delayMs;
    for (let attempt = 1; ; attempt += 1) {
      try {
        const expected = session.delayVersion;
        const version = await this.#register.write({ name, expected, value: "", ttlMs, isQuiet: true });
        if (version !== undefined) {
          session.delayVersion = version;
          return;
        }
      } catch (error) {
        if (!(error instanceof OutcomeUnknown) || attempt >= MOST_TRIES) throw error;
      }
      session.delayVersion = (await this.#register.read(name))?.version ?? 0;
    }
  }

  /** Of holders that are dead: the sessions whose delay after loss is over as well, or that asked for none. */
  async findSpent(holders: readonly MaybeDelayed[], dead: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    const spent = new Set<string>();
    const looks = holders.map(async ({ session, delayMs }) => {
      if (!dead.has(session)) return;
      if (delayMs === 0 || (await this.#register.read(DELAY_PREFIX + session)) === undefined) spent.add(session);
    });
    await Promise.all(looks);
    return spent;
  }

  /** The ids of those whose delay is not over, or has not begun. */
  async listDelays(): Promise<ReadonlySet<string>> {
    const cells = await this.#register.list(DELAY_PREFIX);
    return new Set(cells.map(({ name }) => name.slice(DELAY_PREFIX.length)));
  }

  async remove(session: OwnSession): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const name = PREFIX + session.id;
        const version = await this.#register.write({ name, expected: session.version, value: undefined });
        if (version !== undefined) return;
      } catch (error) {
        if (!(error instanceof OutcomeUnknown) || attempt >= MOST_TRIES) throw error;
      }
      const cell = await this.read(session.id);
      if (cell === undefined) return;
      session.version = cell.version;
    }
  }

  /** The last sign of life, or undefined when the session is over for ever. */
  read(id: string): Promise<Cell | undefined> {
    return this.#register.read(PREFIX + id);
  }

  /** The ids of all that live. */
  async list(): Promise<ReadonlySet<string>> {
    const cells = await this.#register.list(PREFIX);
    return new Set(cells.map(({ name }) => name.slice(PREFIX.length)));
  }

  #write(id: string, expected: number, { owner, leaseMs }: SessionRequest): Promise<number | undefined> {
    const sign: Sign = { owner, leaseMs, at: this.#clock.wall() };
    return this.#register.write({
      name: PREFIX + id,
      expected,
      value: JSON.stringify(sign),
      ttlMs: leaseMs,
      isQuiet: true,
    });
  }
}

/**
 * When the sign of life was given, by the wall clock of whoever gave it. One that somebody else has written over says nothing: it is looked
 * again soon whether the session is still there.
 */
export function signedAt({ value }: Cell): number {
  try {
    // Its shape is what our own processes wrote.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    const { at } = JSON.parse(value) as Partial<Sign>;
    return typeof at === "number" ? at : 0;
  } catch {
    return 0;
  }
}

export function ownSession({ handle }: Session): OwnSession {
  if (handle instanceof OwnSession) return handle;
  throw new InvalidInput("session", handle, "a session that this connection has opened");
}
