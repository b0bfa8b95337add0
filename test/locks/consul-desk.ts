/** Short words for tests of locks on a real Consul. */
import type { ConsulServer } from "../../servers/consul-server.ts";
import type { AcquireRequest, AcquireResult, LockHold, Locks, Session } from "../../src/locks/port.ts";

export const LEASE_MS = 2_000;
/** Consul's own shortest lease is ten seconds, unless it is told otherwise. */
export const SHORT_LEASES = { session_ttl_min: "1s" };

export interface KeyEntry {
  readonly Key: string;
  readonly Value: string;
  readonly LockIndex: number;
  readonly ModifyIndex: number;
  readonly Session?: string;
}

export interface SessionEntry {
  readonly ID: string;
  readonly Name: string;
  readonly TTL: string;
  readonly Behavior: string;
  /** Nanoseconds. */
  readonly LockDelay: number;
  readonly NodeChecks: readonly string[];
}

/** Asks Consul itself, beside the driver. */
export async function ask(server: ConsulServer, path: string, init: RequestInit = {}): Promise<Response> {
  return await fetch(`http://${server.address}/v1${path}`, init);
}

export async function keysOf(server: ConsulServer, prefix: string): Promise<readonly KeyEntry[]> {
  const response = await ask(server, `/kv/${prefix}/?recurse&consistent`);
  return response.status === 404 ? [] : ((await response.json()) as KeyEntry[]);
}

/** Those of one owner. */
export async function sessionsOf(server: ConsulServer, owner: string): Promise<readonly SessionEntry[]> {
  const all = (await (await ask(server, "/session/list?consistent")).json()) as SessionEntry[];
  return all.filter(({ Name }) => Name === owner);
}

export async function openSession(locks: Locks, owner: string, leaseMs = 120_000): Promise<Session> {
  return await locks.openSession({ owner, leaseMs, expiry: "release" });
}

export type Wish = Partial<Omit<AcquireRequest, "session" | "name">>;

/** Tries, unless a signal is given. */
export async function tryLock(locks: Locks, session: Session, name: string, wish: Wish = {}): Promise<AcquireResult> {
  return await locks.acquire({ session, name, slots: 1, delayAfterLossMs: 0, signal: AbortSignal.abort(), ...wish });
}

/** Waits for it. */
export async function takeLock(locks: Locks, session: Session, name: string, wish: Wish = {}): Promise<LockHold> {
  const result = await tryLock(locks, session, name, { signal: new AbortController().signal, ...wish });
  if (!result.ok) throw new Error(`Lock ${name} is ${result.why}.`);
  return result.hold;
}

/** Resolves when so many wait for the lock. */
export async function waitUntilWaiting(locks: Locks, name: string, count: number): Promise<void> {
  const seen = new AbortController();
  await locks.watch({
    name,
    changed: (report) => {
      if ((report?.waiting ?? 0) >= count) seen.abort();
    },
    signal: seen.signal,
  });
}
