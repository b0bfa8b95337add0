/** Decisions about a lock in Consul that rest on what was read before somebody else's: nothing of them may be done. */
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { startConsulServer } from "../../servers/consul-server.ts";
import { ConsulApi } from "../../src/consul/api.ts";
import { loadUndici } from "../../src/consul/client-library.ts";
import { ConsulHttp } from "../../src/consul/http.ts";
import { consulLocks } from "../../src/consul/index.ts";
import { type LockState, waiterKey } from "../../src/consul/lock-keys.ts";
import { LockReader } from "../../src/consul/lock-reader.ts";
import { consulSettings } from "../../src/consul/options.ts";
import { type Contender, decide, reportOf } from "../../src/consul/rules.ts";
import { systemClock } from "../../src/domain/clock.ts";
import type { Locks } from "../../src/locks/port.ts";
import { started } from "../started.ts";
import { ask, openSession, takeLock } from "./consul-desk.ts";

const PREFIX = "decisions";
const SLOTS = 3;

interface Desk {
  readonly locks: Locks;
  readonly api: ConsulApi;
  readonly reader: LockReader;
  /** A holder of one slot dies, and leaves data behind. */
  readonly leaveBehind: (name: string) => Promise<void>;
}

describe("decisions in Consul that rest on the same state", () => {
  const closings: (() => Promise<void>)[] = [];
  after(() => Promise.allSettled(closings.map((close) => close())));

  const running = started(async () => {
    const server = await startConsulServer();
    const { address } = server;
    const locks = await consulLocks({ address, prefix: PREFIX });
    const http = new ConsulHttp(consulSettings({ address }, {}), await loadUndici());
    closings.push(
      () => locks.close(),
      () => http.close(),
    );
    const api = new ConsulApi(http);
    const desk: Desk = {
      locks,
      api,
      reader: new LockReader(api, PREFIX, { clock: systemClock, random: Math.random }),
      async leaveBehind(name) {
        const session = await openSession(locks, "dead");
        await takeLock(locks, session, name, { slots: SLOTS, data: "left behind" });
        await ask(server, `/session/destroy/${session.id}`, { method: "PUT" });
      },
    };
    return { ...desk, stop: () => server.stop() };
  });

  test("a sweep takes nothing of a lock that somebody has taken meanwhile", async () => {
    const { locks, reader, leaveBehind } = running();
    await leaveBehind("swept");
    const before = await reader.read("swept");
    // It takes the same slot as the last holder, for the same delay.
    const hold = await takeLock(locks, await openSession(locks, "next"), "swept", { slots: SLOTS });
    await reader.sweep(before);
    const report = await locks.read("swept");
    assert.deepEqual([report?.slots, report?.holders.map(({ fence }) => fence)], [SLOTS, [hold.fence]]);
  });

  test("of two grants for different slots the second one is refused", async () => {
    const { locks, api, reader, leaveBehind } = running();
    const name = "granted";
    const lock = reader.lockOf(name);
    await leaveBehind(name);
    const [first, second] = [await contender("first"), await contender("second")];
    const value = JSON.stringify({ owner: "first", slots: SLOTS });
    const key = waiterKey(lock, first.nonce);
    assert.ok((await api.commit([{ verb: "lock", key, session: first.consulSession, value }])).ok);
    // Both look now: the first in line wants the slot of the dead holder, the second one the next.
    const state = await reader.read(name);
    assert.equal((await take(state, first)).ok, true, "nothing has changed since the first looked");
    assert.equal((await take(state, second)).ok, false, "the second one has to look again");
    const report = reportOf(await reader.read(name), systemClock.wall());
    assert.deepEqual([report?.slots, report?.holders.map(({ owner }) => owner)], [SLOTS, ["first"]]);

    async function contender(owner: string): Promise<Contender> {
      const { id } = await openSession(locks, owner);
      const record = { nonce: owner, session: id, owner, since: 0 };
      return { nonce: owner, slots: SLOTS, delayMs: 0, consulSession: id, record };
    }

    async function take(from: LockState, who: Contender): ReturnType<ConsulApi["commit"]> {
      const decision = decide(lock, from, who, new Map(), systemClock.wall());
      assert.ok(decision.kind === "take");
      return await api.commit(decision.steps);
    }
  });
});
