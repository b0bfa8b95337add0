/** Connections to one memory store, with a clock that is moved by hand, and locks whose calls a test can watch or make fail. */
import { Baton } from "../../src/client/baton.ts";
import type { Instant } from "../../src/domain/clock.ts";
import { MemoryStore } from "../../src/engines/memory/index.ts";
import type { BatonEvent } from "../../src/index.ts";
import type * as port from "../../src/locks/port.ts";
import { ManualClock } from "../manual-clock.ts";
import { PassThrough } from "../pass-through.ts";

export const LEASE_MS = 3_000;
/** The lease without its margin of half a second. */
export const USABLE_MS = 2_500;

export class LockStage {
  readonly clock: ManualClock = new ManualClock();
  readonly store: MemoryStore = new MemoryStore({ clock: this.clock });

  connect(): Connected {
    const engine = new ScriptedLocksEngine(this.store.connect());
    const events: BatonEvent[] = [];
    const baton = new Baton(engine, { clock: this.clock, onEvent: (event) => events.push(event) });
    return { baton, locks: engine.scripted, events };
  }
}

export interface Connected {
  readonly baton: Baton;
  readonly locks: ScriptedLocks;
  readonly events: BatonEvent[];
}

class ScriptedLocksEngine extends PassThrough {
  readonly scripted: ScriptedLocks = new ScriptedLocks(this.inner.locks());

  override locks(): port.Locks {
    return this.scripted;
  }
}

export class ScriptedLocks implements port.Locks {
  readonly name: string;
  readonly limits: port.LockLimits;
  readonly #inner: port.Locks;
  readonly opened: port.SessionRequest[] = [];
  renewals = 0;
  closed = 0;
  onRenew: ((session: port.Session) => Promise<Instant | undefined>) | undefined;
  onAcquire: ((request: port.AcquireRequest) => Promise<port.AcquireResult>) | undefined;
  onRelease: ((request: port.ReleaseRequest) => Promise<boolean>) | undefined;

  constructor(inner: port.Locks) {
    this.#inner = inner;
    this.name = inner.name;
    this.limits = inner.limits;
  }

  openSession(request: port.SessionRequest): Promise<port.Session> {
    this.opened.push(request);
    return this.#inner.openSession(request);
  }

  renewSession(session: port.Session): Promise<Instant | undefined> {
    this.renewals += 1;
    return (this.onRenew ?? ((one) => this.#inner.renewSession(one)))(session);
  }

  closeSession(session: port.Session): Promise<void> {
    this.closed += 1;
    return this.#inner.closeSession(session);
  }

  acquire(request: port.AcquireRequest): Promise<port.AcquireResult> {
    return (this.onAcquire ?? ((one) => this.#inner.acquire(one)))(request);
  }

  release(request: port.ReleaseRequest): Promise<boolean> {
    return (this.onRelease ?? ((one) => this.#inner.release(one)))(request);
  }

  read(name: string): Promise<port.LockReport | undefined> {
    return this.#inner.read(name);
  }

  watch(request: port.WatchRequest): Promise<void> {
    return this.#inner.watch(request);
  }

  list(): Promise<readonly port.LockReport[]> {
    return this.#inner.list();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

export function namesOf(events: readonly BatonEvent[]): string[] {
  return events.map((event) => ("why" in event ? `${event.type} ${event.why}` : event.type));
}

/** Rejects when it fires, as most things do that take a signal. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const end = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error("aborted"));
    if (signal.aborted) end();
    else signal.addEventListener("abort", end);
  });
}
