import { type Clock, instant } from "../../../src/domain/clock.ts";
import { OutcomeUnknown } from "../../../src/domain/errors.ts";
import type { Locks } from "../../../src/locks/port.ts";
import type { Cell, Register } from "../../../src/locks/register.ts";
import type { Random } from "../../kit/random.ts";
import type { VirtualTime } from "../../simulation/virtual-time.ts";
import { LocksPassThrough, RegisterPassThrough } from "../pass-through.ts";
import type { Promised } from "./checker.ts";

/** One planted bug, in one run: in the store, in a driver, or in the locks themselves. */
export interface Plant {
  /** At the store: the network is in front of it. */
  readonly store?: (register: Register) => Register;
  /** In the process: behind it is the network. */
  readonly register?: (register: Register) => Register;
  readonly locks?: (locks: Locks, clock: Clock) => Locks;
}

/** Made anew for each run, because most bugs have a memory. */
export type MakePlant = (run: { readonly time: VirtualTime; readonly random: Random }) => Plant;

export interface PlantedBug {
  readonly name: string;
  readonly make: MakePlant;
  /** What it breaks: the first violation that the checker finds must be one of these. */
  readonly breaks: readonly Promised[];
  /** Where the search begins: few seeds show it, and one of them is near. */
  readonly from?: number;
}

/** Each must be found within a few hundred seeds, or the checker proves nothing. */
export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    name: "the store removes cells before their time",
    breaks: ["exclusive", "delayed"],
    make: () => ({
      store: (inner) =>
        new RegisterPassThrough(inner, {
          write: (request) =>
            inner.write(request.ttlMs === undefined ? request : { ...request, ttlMs: request.ttlMs * 0.5 }),
        }),
    }),
  },
  {
    name: "the store does not compare versions",
    breaks: ["exclusive", "fenced", "answers"],
    make: () => ({
      store: (inner) =>
        new RegisterPassThrough(inner, {
          async write(request) {
            return await inner.write({ ...request, expected: (await inner.read(request.name))?.version ?? 0 });
          },
        }),
    }),
  },
  { name: "the store reads what was there a second ago", breaks: ["exclusive", "delayed"], make: readStale },
  {
    name: "one write in twenty is answered and not made",
    breaks: ["exclusive", "fenced", "answers", "nothing left", "served"],
    make: ({ random }) => {
      let last = 1_000_000;
      return {
        store: (inner) =>
          new RegisterPassThrough(inner, {
            async write(request) {
              if (!random.chance(0.05)) return await inner.write(request);
              last += 1;
              return last;
            },
          }),
      };
    },
  },
  {
    name: "a driver takes a lost reply for a yes",
    breaks: ["exclusive", "fenced", "answers", "nothing left"],
    make: () => {
      let last = 1_000_000;
      return {
        register: (inner) =>
          new RegisterPassThrough(inner, {
            async write(request) {
              try {
                return await inner.write(request);
              } catch (error) {
                if (!(error instanceof OutcomeUnknown)) throw error;
                last += 1;
                return last;
              }
            },
          }),
      };
    },
  },
  {
    name: "nobody is told of changes",
    breaks: ["prompt"],
    make: () => ({
      store: (inner) => new RegisterPassThrough(inner, { watch: deaf, listen: deaf }),
    }),
  },
  {
    name: "a write does not tell the first of those whom it concerns",
    breaks: ["prompt"],
    make: () => ({
      register: (inner) =>
        new RegisterPassThrough(inner, {
          write: ({ tell = [], ...request }) => inner.write({ ...request, tell: tell.slice(1) }),
        }),
    }),
  },
  { name: "sessions never run out", breaks: ["served", "nothing left"], make: keepSessions },
  {
    name: "fences start over",
    breaks: ["fenced"],
    make: () => ({
      locks: (inner) =>
        new LocksPassThrough(inner, {
          async acquire(request) {
            const result = await inner.acquire(request);
            return result.ok ? { ok: true, hold: { ...result.hold, fence: (result.hold.fence % 10) + 1 } } : result;
          },
        }),
    }),
  },
  {
    name: "a sign of life counts a lease too long",
    breaks: ["exclusive"],
    from: 300,
    make: () => ({
      locks: (inner) =>
        new LocksPassThrough(inner, {
          async renewSession(session) {
            const since = await inner.renewSession(session);
            const tooLongMs = session.leaseMs;
            return since && { wall: since.wall + tooLongMs, monotonic: since.monotonic + tooLongMs };
          },
        }),
    }),
  },
  {
    name: "half of the signs of life are answered and not given",
    breaks: ["exclusive", "answers"],
    make: ({ random }) => ({
      locks: (inner, clock) =>
        new LocksPassThrough(inner, {
          renewSession: async (session) => (random.chance(0.5) ? instant(clock) : await inner.renewSession(session)),
        }),
    }),
  },
  {
    name: "one release in ten is answered and not made",
    breaks: ["nothing left", "served"],
    make: ({ random }) => ({
      locks: (inner) =>
        new LocksPassThrough(inner, {
          release: async (request) => (random.chance(0.1) ? true : await inner.release(request)),
        }),
    }),
  },
  {
    name: "a hold that raced with the signal is forgotten",
    breaks: ["nothing left", "served"],
    make: () => ({
      locks: (inner) =>
        new LocksPassThrough(inner, {
          async acquire(request) {
            const isTry = request.signal.aborted;
            const result = await inner.acquire(request);
            return request.signal.aborted && !isTry ? { ok: false, why: "held" } : result;
          },
        }),
    }),
  },
  {
    name: "there is no delay after a loss",
    breaks: ["delayed"],
    make: () => ({
      locks: (inner) =>
        new LocksPassThrough(inner, { acquire: (request) => inner.acquire({ ...request, delayAfterLossMs: 0 }) }),
    }),
  },
  {
    name: "a retired lock is given out",
    breaks: ["retired"],
    make: () => ({
      locks: (inner) => new LocksPassThrough(inner, { release: ({ hold }) => inner.release({ hold }) }),
    }),
  },
  {
    name: "a session that is closed frees nothing",
    breaks: ["prompt"],
    make: () => ({ locks: (inner) => new LocksPassThrough(inner, { closeSession: async () => undefined }) }),
  },
];

/** Every cell is shown as it was a second ago; what came since is not there. */
function readStale({ time }: { readonly time: VirtualTime }): Plant {
  const past = new Map<string, { readonly at: number; readonly cell: Cell | undefined }[]>();
  return {
    store: (inner) =>
      new RegisterPassThrough(inner, {
        async write(request) {
          const version = await inner.write(request);
          const { name, value } = request;
          const cell = version === undefined || value === undefined ? undefined : { name, version, value };
          if (version !== undefined) past.set(name, [...(past.get(name) ?? []), { at: time.now, cell }]);
          return version;
        },
        async read(name) {
          if (!name.startsWith("session/")) return await inner.read(name);
          return past.get(name)?.findLast(({ at }) => at <= time.now - 1_000)?.cell;
        },
      }),
  };
}

/** Whoever looks at a session finds it as it was last written. */
function keepSessions(): Plant {
  const last = new Map<string, Cell>();
  return {
    store: (inner) =>
      new RegisterPassThrough(inner, {
        async write(request) {
          const version = await inner.write(request);
          const { name, value } = request;
          if (version !== undefined && value !== undefined) last.set(name, { name, version, value });
          return version;
        },
        read: async (name) => (await inner.read(name)) ?? (name.startsWith("session/") ? last.get(name) : undefined),
      }),
  };
}

/** Never calls back. */
async function deaf(): Promise<{ stop(): void }> {
  return { stop: () => undefined };
}
