import type { Instant } from "../../src/domain/clock.ts";
import type * as port from "../../src/locks/port.ts";
import type { Cell, Register, WriteRequest } from "../../src/locks/register.ts";

/** Locks that pass every call on, except for what is broken or planted. */
export class LocksPassThrough implements port.Locks {
  readonly name: string;
  readonly limits: port.LockLimits;
  readonly #inner: port.Locks;
  readonly #flaw: Partial<port.Locks>;

  constructor(inner: port.Locks, flaw: Partial<port.Locks>) {
    this.name = inner.name;
    this.limits = flaw.limits ?? inner.limits;
    this.#inner = inner;
    this.#flaw = flaw;
  }

  openSession(request: port.SessionRequest): Promise<port.Session> {
    return this.#flaw.openSession?.(request) ?? this.#inner.openSession(request);
  }

  renewSession(session: port.Session): Promise<Instant | undefined> {
    return this.#flaw.renewSession?.(session) ?? this.#inner.renewSession(session);
  }

  closeSession(session: port.Session): Promise<void> {
    return this.#flaw.closeSession?.(session) ?? this.#inner.closeSession(session);
  }

  acquire(request: port.AcquireRequest): Promise<port.AcquireResult> {
    return this.#flaw.acquire?.(request) ?? this.#inner.acquire(request);
  }

  release(request: port.ReleaseRequest): Promise<boolean> {
    return this.#flaw.release?.(request) ?? this.#inner.release(request);
  }

  read(name: string): Promise<port.LockReport | undefined> {
    return this.#flaw.read?.(name) ?? this.#inner.read(name);
  }

  watch(request: port.WatchRequest): Promise<void> {
    return this.#flaw.watch?.(request) ?? this.#inner.watch(request);
  }

  list(): Promise<readonly port.LockReport[]> {
    return this.#flaw.list?.() ?? this.#inner.list();
  }

  close(): Promise<void> {
    return this.#flaw.close?.() ?? this.#inner.close();
  }
}

/** The same for a register. */
export class RegisterPassThrough implements Register {
  readonly #inner: Register;
  readonly #flaw: Partial<Register>;

  constructor(inner: Register, flaw: Partial<Register>) {
    this.#inner = inner;
    this.#flaw = flaw;
  }

  read(name: string): Promise<Cell | undefined> {
    return this.#flaw.read?.(name) ?? this.#inner.read(name);
  }

  write(request: WriteRequest): Promise<number | undefined> {
    return this.#flaw.write?.(request) ?? this.#inner.write(request);
  }

  watch(name: string, changed: () => void): Promise<{ stop(): void }> {
    return this.#flaw.watch?.(name, changed) ?? this.#inner.watch(name, changed);
  }

  listen(name: string, told: () => void): Promise<{ stop(): void }> {
    return this.#flaw.listen?.(name, told) ?? this.#inner.listen(name, told);
  }

  list(prefix: string): Promise<readonly Cell[]> {
    return this.#flaw.list?.(prefix) ?? this.#inner.list(prefix);
  }

  close(): Promise<void> {
    return this.#flaw.close?.() ?? this.#inner.close();
  }
}
