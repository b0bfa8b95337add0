import { type Clock, systemClock } from "../../domain/clock.ts";
import type { Locks, SessionRequest } from "../../locks/port.ts";
import { present } from "../expect.ts";
import type { SuiteScene } from "../suite.ts";
import { Contender } from "./contender.ts";
import type { LocksTarget } from "./target.ts";

/** A lease that no case lives long enough to lose. */
const LONG_LEASE_MS = 120_000;
const SHORT_LEASE_MS = 400;
const SLACK_MS = 5_000;
/** A lease that is kept alive by timers has room for a process that is kept waiting by others. */
const KEPT_LEASE_MS = 3_000;

export interface ContenderWish extends Partial<SessionRequest> {
  /** A connection that others use too. Default: one of its own. */
  readonly locks?: Locks;
}

/**
 * Where one case plays: names of its own in the store under test, and contenders. Time passes for real, so a case never
 * waits for a moment; it waits for a lock that the moment sets free.
 */
export class LockScene implements SuiteScene {
  readonly clock: Clock = systemClock;
  readonly #target: LocksTarget;
  readonly #prefix: string;
  readonly #over: AbortSignal;
  readonly #connections = new Set<Locks>();
  #first: Locks | undefined;
  #count = 0;

  constructor(target: LocksTarget, prefix: string, over: AbortSignal) {
    this.#target = target;
    this.#prefix = prefix;
    this.#over = over;
  }

  async begin(): Promise<void> {
    this.#first = await this.open();
  }

  async end(): Promise<void> {
    const connections = [...this.#connections];
    this.#connections.clear();
    await Promise.allSettled(connections.map((connection) => connection.close()));
  }

  /** The first connection. */
  get locks(): Locks {
    return present(this.#first, "The scene has begun");
  }

  /** A lease that is let run out. */
  get leaseMs(): number {
    return this.#target.leaseMs ?? Math.max(SHORT_LEASE_MS, this.locks.limits.shortestLeaseMs);
  }

  /** How much later than a lease its loss may be seen. */
  get slackMs(): number {
    return this.#target.slackMs ?? SLACK_MS;
  }

  /** The name of a lock that no other case uses. */
  lock(name = "lock"): string {
    return `${this.#prefix}-${name}`;
  }

  async open(): Promise<Locks> {
    const connection = await this.#target.open();
    this.#connections.add(connection);
    return connection;
  }

  /** One whose session outlives the case. */
  async contender({ locks, ...wish }: ContenderWish = {}): Promise<Contender> {
    const connection = locks ?? (await this.open());
    this.#count += 1;
    const leaseMs = Math.min(LONG_LEASE_MS, connection.limits.longestLeaseMs);
    const request = { owner: `contender ${this.#count}`, leaseMs, expiry: "release" as const, ...wish };
    return new Contender(connection, await connection.openSession(request), this.#over);
  }

  /** One whose session runs out unless it is renewed. */
  async mortal(wish: ContenderWish = {}): Promise<Contender> {
    return await this.contender({ leaseMs: this.leaseMs, ...wish });
  }

  /** One whose session is short, and renewed in time as long as the case lasts. */
  async renewed(wish: ContenderWish = {}): Promise<Contender> {
    const contender = await this.mortal({ leaseMs: Math.max(this.leaseMs, KEPT_LEASE_MS), ...wish });
    contender.keepAlive();
    return contender;
  }

  /** Waits until sessions of mortals that were opened before, and not renewed, have run out. */
  async letLeasesRunOut(leaseMs: number = this.leaseMs): Promise<void> {
    const name = this.lock(`hourglass ${this.#count}`);
    const mortal = await this.mortal({ leaseMs });
    await mortal.take(name);
    const other = await this.contender({ locks: this.locks });
    await other.release(await other.wait(name).hold);
  }

  async crash(contender: Contender): Promise<void> {
    // The dead do not close their connections.
    this.#connections.delete(contender.locks);
    await able(this.#target.crash)(contender.locks);
  }

  /** The next change that the contender makes takes effect, and nobody tells it. */
  loseReply(contender: Contender): void {
    able(this.#target.loseReply)(contender.locks);
  }

  async restart(): Promise<void> {
    await able(this.#target.restart)();
  }
}

function able<T>(ability: T | string): T {
  if (typeof ability === "string") throw new Error(ability);
  return ability;
}
