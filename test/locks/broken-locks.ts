import type { LockPromise, LocksTarget } from "../../src/conformance/index.ts";
import { instant, systemClock } from "../../src/domain/clock.ts";
import { BatonError } from "../../src/domain/errors.ts";
import { MemoryCells, MemoryRegister } from "../../src/engines/memory/register.ts";
import type { Locks } from "../../src/locks/port.ts";
import type { Cell, Register } from "../../src/locks/register.ts";
import type { LockRecord } from "../../src/locks/rules.ts";
import { LocksPassThrough, RegisterPassThrough } from "./pass-through.ts";
import { registerTarget } from "./register-target.ts";

/** Locks with one flaw, which the cases of one promise must find. */
export interface BrokenLocks {
  readonly promise: LockPromise;
  readonly flaw: string;
  target(): LocksTarget;
}

interface Flaw {
  /** In the store. */
  readonly register?: (inner: Register) => Partial<Register>;
  /** In the driver, where lost replies arrive. */
  readonly driver?: (inner: Register) => Partial<Register>;
  readonly locks?: (inner: Locks) => Partial<Locks>;
  readonly restart?: () => void;
}

export const brokenLocks: readonly BrokenLocks[] = [
  broken("exclusive", "do not compare versions", () => ({
    register: (inner) => ({
      write: async (request) =>
        await inner.write({ ...request, expected: (await inner.read(request.name))?.version ?? 0 }),
    }),
  })),
  broken("exclusive", "have a slot more than was said", () => ({
    locks: (inner) => ({ acquire: (request) => inner.acquire({ ...request, slots: request.slots + 1 }) }),
  })),
  broken("fenced", "start fences over", () => ({
    locks: (inner) => ({
      async acquire(request) {
        const result = await inner.acquire(request);
        return result.ok ? { ok: true, hold: { ...result.hold, fence: (result.hold.fence % 7) + 1 } } : result;
      },
    }),
  })),
  broken("fenced", "start fences over at a restart", () => {
    let last = 0;
    let before = 0;
    return {
      restart: () => (before = last),
      locks: (inner) => ({
        async acquire(request) {
          const result = await inner.acquire(request);
          if (!result.ok) return result;
          last = Math.max(last, result.hold.fence);
          return { ok: true, hold: { ...result.hold, fence: result.hold.fence - before } };
        },
      }),
    };
  }),
  broken("asked", "forget a hold that raced with the signal", () => ({
    locks: (inner) => ({
      async acquire(request) {
        const isTry = request.signal.aborted;
        const result = await inner.acquire(request);
        return request.signal.aborted && !isTry ? { ok: false, why: "held" } : result;
      },
    }),
  })),
  broken("asked", "keep the place of one who gave up", () => ({
    locks: (inner) => ({
      async acquire(request) {
        if (request.signal.aborted) return await inner.acquire(request);
        const gone = Promise.withResolvers<{ ok: false; why: "held" }>();
        request.signal.addEventListener("abort", () => gone.resolve({ ok: false, why: "held" }));
        const endless = new AbortController();
        return await Promise.race([gone.promise, inner.acquire({ ...request, signal: endless.signal })]);
      },
    }),
  })),
  broken("fair", "serve the last one first", () => ({
    register: (inner) => ({ write: (request) => inner.write({ ...request, value: lastFirst(request.value) }) }),
  })),
  broken("prompt", "tell nobody of changes", () => ({
    register: () => ({ watch: deaf, listen: deaf }),
  })),
  broken("prompt", "free nothing when a session is closed", () => ({
    locks: () => ({ closeSession: async () => undefined }),
  })),
  broken("released", "say yes to every release", () => ({
    locks: (inner) => ({
      async release(request) {
        await inner.release(request);
        return true;
      },
    }),
  })),
  broken("sessions", "renew what is over", () => ({
    locks: (inner) => ({
      renewSession: async (session) => (await inner.renewSession(session)) ?? instant(systemClock),
    }),
  })),
  broken("sessions", "count a lease from its reply", () => ({
    locks: (inner) => ({
      async openSession(request) {
        const session = await inner.openSession(request);
        return { ...session, since: { wall: session.since.wall, monotonic: session.since.monotonic + 1_000 } };
      },
    }),
  })),
  broken("sessions", "close nothing", () => ({ locks: () => ({ closeSession: async () => undefined }) })),
  broken("lost", "never end a session", () => {
    const last = new Map<string, Cell>();
    return {
      register: (inner) => ({
        async write(request) {
          const version = await inner.write(request);
          const { name, value } = request;
          if (version !== undefined && value !== undefined) last.set(name, { name, version, value });
          return version;
        },
        read: async (name) => (await inner.read(name)) ?? (name.startsWith("session/") ? last.get(name) : undefined),
      }),
    };
  }),
  broken("lost", "end sessions before their time", () => ({
    register: (inner) => ({
      write: ({ ttlMs, ...request }) => inner.write(ttlMs === undefined ? request : { ...request, ttlMs: ttlMs / 2 }),
    }),
  })),
  broken("delayed", "know no delay", () => ({
    locks: (inner) => ({ acquire: (request) => inner.acquire({ ...request, delayAfterLossMs: 0 }) }),
  })),
  broken("delayed", "delay the whole lock for one slot", () => ({
    register: (inner) => ({ write: (request) => inner.write({ ...request, value: delayAll(request.value) }) }),
  })),
  broken("retired", "know no retirement", () => ({
    locks: (inner) => ({ release: ({ hold }) => inner.release({ hold }) }),
  })),
  broken("shown", "lose the data", () => ({
    locks: (inner) => ({
      acquire: ({ session, name, slots, delayAfterLossMs, signal }) =>
        inner.acquire({ session, name, slots, delayAfterLossMs, signal }),
    }),
  })),
  broken("shown", "list the dead", () => {
    const names = new Set<string>();
    return {
      locks: (inner) => ({
        async acquire(request) {
          names.add(request.name);
          return await inner.acquire(request);
        },
        list: async () => [...names].toSorted().map((name) => ({ name, slots: 1, holders: [], waiting: 0 })),
      }),
    };
  }),
  broken("shown", "watch only once", () => ({
    locks: (inner) => ({
      async watch({ name, changed, signal }) {
        changed(await inner.read(name));
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
    }),
  })),
  broken("bounded", "bend what is beyond the limits", () => ({
    locks: (inner) => ({
      openSession: (request) => {
        const { shortestLeaseMs, longestLeaseMs } = inner.limits;
        const leaseMs = Math.min(Math.max(request.leaseMs || 0, shortestLeaseMs), longestLeaseMs);
        return inner.openSession({ ...request, leaseMs });
      },
    }),
  })),
  broken("honest", "take a lost reply for a no", () => ({
    driver: (inner) => ({
      async write(request) {
        try {
          return await inner.write(request);
        } catch {
          throw new BatonError("STORE_UNAVAILABLE", "The store did not answer. Nothing was done.");
        }
      },
    }),
  })),
  broken("honest", "go on when they are closed", () => ({ locks: () => ({ close: async () => undefined }) })),
  broken("durable", "forget everything at a restart", () => {
    const forgotten = new Set<string>();
    const known = new Set<string>();
    return {
      restart: () => known.forEach((name) => forgotten.add(name)),
      register: (inner) => ({
        async write(request) {
          known.add(request.name);
          forgotten.delete(request.name);
          return await inner.write(request);
        },
        read: async (name) => (forgotten.has(name) ? undefined : await inner.read(name)),
      }),
    };
  }),
];

/** `start` is called once for each store; what it returns breaks each connection to that store. */
function broken(promise: LockPromise, flaw: string, start: () => Flaw): BrokenLocks {
  return {
    promise,
    flaw,
    target() {
      const cells = new MemoryCells(systemClock);
      const { register = () => ({}), driver, locks, restart } = start();
      const target = registerTarget({
        name: flaw,
        openRegister: async () => {
          const inner = new MemoryRegister(cells);
          return new RegisterPassThrough(inner, register(inner));
        },
        ...(driver === undefined ? {} : { driver: (inner) => new RegisterPassThrough(inner, driver(inner)) }),
        ...(locks === undefined ? {} : { locks: (inner) => new LocksPassThrough(inner, locks(inner)) }),
        restart: async () => restart?.(),
      });
      return target;
    },
  };
}

function lastFirst(value: string | undefined): string | undefined {
  if (value?.includes('"waiters"') !== true) return value;
  const record = JSON.parse(value) as LockRecord;
  return JSON.stringify({ ...record, waiters: record.waiters.toReversed() });
}

function delayAll(value: string | undefined): string | undefined {
  if (value?.includes('"delays"') !== true) return value;
  const record = JSON.parse(value) as LockRecord;
  const [first] = record.delays;
  return JSON.stringify({
    ...record,
    ...(first === undefined ? {} : { delays: [first, { ...first, until: first.until + 1 }] }),
  });
}

/** Never calls back. */
async function deaf(): Promise<{ stop(): void }> {
  return { stop: () => undefined };
}
