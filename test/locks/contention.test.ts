/** What a hand-over costs when many wait for one lock: counted in calls of the register, so that it does not depend on the machine. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test, type TestContext } from "node:test";
import { type NatsServer, startNatsServer } from "../../servers/nats-server.ts";
import { systemClock } from "../../src/domain/clock.ts";
import { MemoryCells, MemoryRegister } from "../../src/engines/memory/register.ts";
import { SqliteEngine } from "../../src/engines/sqlite/engine.ts";
import { locksOnRegister } from "../../src/locks/locks-on-register.ts";
import type { LockHold, Locks, Session } from "../../src/locks/port.ts";
import type { Register, WriteRequest } from "../../src/locks/register.ts";
import { MOST_WAITERS } from "../../src/locks/rules.ts";
import { openNats } from "./nats-handles.ts";
import { RegisterPassThrough } from "./pass-through.ts";

const CONTENDERS = 16;
const ROUNDS = 8;
/** Longer than any of this takes. */
const LEASE_MS = 120_000;
/** Of one that is waited for. */
const SHORT_LEASE_MS = 2_000;
/** One read by who is told, one of the session ahead by who joins; the rest is for lost races, and for looks that were not needed. */
const MOST_READS = 6;
/** One to let go and one to join again; the rest is for lost races. */
const MOST_WRITES = 5;

let server: NatsServer | undefined;
before(async () => {
  server = await startNatsServer();
});
after(() => server?.stop());

const folder = mkdtempSync(join(tmpdir(), "baton-contention-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const cells = new MemoryCells(systemClock);

const stores: Readonly<Record<string, (context: TestContext) => Promise<Register>>> = {
  memory: async () => new MemoryRegister(cells),
  SQLite: async (context) => {
    const engine = await SqliteEngine.open({ file: join(folder, "store.db"), synchronous: "normal" });
    context.after(() => engine.close());
    return engine.register;
  },
  NATS: async (context) => (await openNats(context, [server?.port ?? 0])).register,
};

describe("one lock that many want", () => {
  for (const [name, open] of Object.entries(stores)) {
    test(`is handed over for a few calls in ${name}, however many wait`, { timeout: 120_000 }, async (context) => {
      const count = { reads: 0, writes: 0 };
      const contenders = await Promise.all(
        Array.from({ length: CONTENDERS }, async () => await contend(counting(await open(context), count))),
      );
      // All are in line before anything is counted.
      const [first, ...others] = contenders;
      assert.ok(first !== undefined);
      const hold = await take(first);
      const waiting = others.map((other) => take(other));
      await isInLine(first.locks, others.length);
      Object.assign(count, { reads: 0, writes: 0 });
      let handOvers = 0;
      const play = async (contender: Contender, begin: Promise<LockHold>): Promise<void> => {
        for (let next = begin, round = 1; ; round += 1) {
          await contender.locks.release({ hold: await next });
          handOvers += 1;
          if (round === ROUNDS) return;
          next = take(contender);
        }
      };
      const plays = others.map((other, at) => play(other, waiting[at] ?? fail()));
      await Promise.all([play(first, Promise.resolve(hold)), ...plays]);
      const [reads, writes] = [count.reads / handOvers, count.writes / handOvers];
      context.diagnostic(`${reads.toFixed(1)} reads, ${writes.toFixed(1)} writes for each of ${handOvers} hand-overs`);
      assert.ok(reads < MOST_READS, `It took ${reads.toFixed(1)} reads.`);
      assert.ok(writes < MOST_WRITES, `It took ${writes.toFixed(1)} writes.`);
    });
  }

  test("is had by all of them, also by those for whom there is no place in line", async () => {
    const contenders = await Promise.all(
      Array.from({ length: MOST_WAITERS + 8 }, () => contend(new MemoryRegister(cells), "crowded")),
    );
    const fences = await Promise.all(
      contenders.map(async (contender) => {
        const hold = await take(contender);
        await contender.locks.release({ hold });
        return hold.fence;
      }),
    );
    assert.equal(new Set(fences).size, contenders.length);
  });
});

test("a request that arrives a second time, after all was over, ends with its session", async () => {
  const requests: WriteRequest[] = [];
  const inner = new MemoryRegister(cells);
  const ann = await contend(
    new RegisterPassThrough(inner, {
      write(request) {
        requests.push(request);
        return inner.write(request);
      },
    }),
    "twice",
    SHORT_LEASE_MS,
  );
  await ann.locks.release({ hold: await take(ann) });
  const again = requests.find(({ name }) => name === "lock/twice");
  assert.ok(again !== undefined && (await inner.write(again)) !== undefined, "It took effect");
  const ben = await contend(new MemoryRegister(cells), "twice");
  assert.equal((await ben.locks.read("twice"))?.holders[0]?.session, ann.session.id);
  const waiting = take(ben);
  await isInLine(ann.locks, 1, "twice");
  await ann.locks.closeSession(ann.session);
  assert.equal(await ben.locks.read("twice").then((report) => report?.holders.some(isOf(ann.session))), false);
  await ben.locks.release({ hold: await waiting });
  assert.equal(await ben.locks.read("twice"), undefined);
});

interface Contender {
  readonly name: string;
  readonly locks: Locks;
  readonly session: Session;
}

async function contend(register: Register, name = "hot", leaseMs = LEASE_MS): Promise<Contender> {
  const locks = locksOnRegister({ name: "counted", register, newId: randomUUID });
  return { name, locks, session: await locks.openSession({ owner: "c", leaseMs, expiry: "release" }) };
}

async function take({ name, locks, session }: Contender): Promise<LockHold> {
  const signal = new AbortController().signal;
  const result = await locks.acquire({ session, name, slots: 1, delayAfterLossMs: 0, signal });
  if (!result.ok) throw new Error(`It was refused as ${result.why}.`);
  return result.hold;
}

async function isInLine(locks: Locks, waiters: number, name = "hot"): Promise<void> {
  const seen = new AbortController();
  const changed = (report: { readonly waiting: number | undefined } | undefined): void => {
    if (report?.waiting === waiters) seen.abort();
  };
  await locks.watch({ name, changed, signal: seen.signal });
}

function counting(inner: Register, count: { reads: number; writes: number }): Register {
  return new RegisterPassThrough(inner, {
    read(name) {
      count.reads += 1;
      return inner.read(name);
    },
    write(request) {
      count.writes += 1;
      return inner.write(request);
    },
  });
}

function isOf({ id }: Session): (holder: { readonly session: string }) => boolean {
  return ({ session }) => session === id;
}

function fail(): never {
  throw new Error("Nobody waits.");
}
