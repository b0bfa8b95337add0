/** Locks where every stream has three replicas: leaders are elected, killed, and followers may be behind. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startNatsCluster } from "../../servers/nats-cluster.ts";
import { serverInfo } from "../../servers/nats-probe.ts";
import type { NatsServer } from "../../servers/nats-server.ts";
import { OutcomeUnknown } from "../../src/domain/errors.ts";
import type { Register } from "../../src/locks/register.ts";
import { until } from "../kit/until.ts";
import { streamInfo } from "../nats/desk.ts";
import { openNats } from "./nats-handles.ts";
import { newName, testRegister, written } from "./register-contract.ts";
import { started } from "../started.ts";

/** A follower waits four to nine seconds before it wants to lead. */
const LEADER_WITHIN_MS = 30_000;
const WRITERS = 4;
const KILLS = 2;
const BETWEEN = 40;

const running = started(() => startNatsCluster());

const ports = (): readonly number[] => running().servers.map(({ port }) => port);

describe("the register of NATS with three replicas", () => {
  testRegister({
    open: async (context) => (await openNats(context, ports(), { replicas: 3 })).register,
    async restart() {
      const { servers } = running();
      await Promise.all(servers.map((server) => server.kill()));
      await Promise.all(servers.map((server) => server.restart()));
      await running().ready();
      await leader();
    },
    outlived: true,
    // Each replica looks for messages whose time is up about once a second, by its own clock.
    lateMs: 3_000,
  });
});

test("no change is lost or made twice while leaders are killed", { timeout: 180_000 }, async (context) => {
  const name = newName();
  const handles = await Promise.all(
    Array.from({ length: WRITERS }, async () => (await openNats(context, ports(), { replicas: 3 })).register),
  );
  written(await handles[0]?.write({ name, expected: 0, value: "[]" }));
  const over = new AbortController();
  const counted = { made: 0 };
  const writers = handles.map((register, at) => write(register, name, `${at}`, counted, over.signal));
  for (let kill = 0; kill < KILLS; kill += 1) {
    const enough = counted.made + BETWEEN;
    await until(() => counted.made >= enough, "some changes", LEADER_WITHIN_MS * 2);
    const killed = await leader();
    await killed.kill();
    const from = performance.now();
    await leader();
    context.diagnostic(`a new leader after ${(performance.now() - from).toFixed(0)} ms`);
    await killed.restart();
  }
  const enough = counted.made + BETWEEN;
  await until(() => counted.made >= enough, "changes after the last kill", LEADER_WITHIN_MS * 2);
  over.abort();
  const histories = await Promise.all(writers);
  const cell = await handles[0]?.read(name);
  const found = JSON.parse(cell?.value ?? "[]") as string[];
  assert.equal(new Set(found).size, found.length, "A change was made twice.");
  for (const [at, { made, unknown }] of histories.entries()) {
    for (const change of made) assert.ok(found.includes(change), `Change ${change} is lost.`);
    const own = found.filter((change) => change.startsWith(`${at}-`));
    assert.ok(own.every((change) => made.includes(change) || unknown.includes(change)));
  }
  context.diagnostic(`${counted.made} changes, ${histories.flatMap(({ unknown }) => unknown).length} unknown`);
});

interface Written {
  readonly made: string[];
  readonly unknown: string[];
}

/** Adds to the cell, one change after the other, and notes which of them were made. Versions rise with each. */
async function write(
  register: Register,
  name: string,
  who: string,
  counted: { made: number },
  over: AbortSignal,
): Promise<Written> {
  const history: Written = { made: [], unknown: [] };
  let last = 0;
  for (let count = 0; !over.aborted; count += 1) {
    const change = `${who}-${count}`;
    try {
      const cell = await register.read(name);
      assert.ok(cell !== undefined && cell.version >= last, "An older version was read than the last that was seen.");
      last = cell.version;
      const value = JSON.stringify([...(JSON.parse(cell.value) as string[]), change]);
      const version = await register.write({ name, expected: cell.version, value });
      if (version === undefined) continue;
      assert.ok(version > last);
      last = version;
      history.made.push(change);
      counted.made += 1;
    } catch (error) {
      if (!(error instanceof OutcomeUnknown)) throw error;
      history.unknown.push(change);
    }
  }
  return history;
}

/** The server that leads the stream of locks, as soon as there is one. */
async function leader(): Promise<NatsServer> {
  return await until(async () => {
    const alive = running().servers.filter(({ isRunning }) => isRunning);
    const names = await Promise.all(alive.map(async ({ port }) => (await serverInfo(port)).server_name));
    for (const { port } of alive) {
      const info = await streamInfo(port, "baton").catch(() => undefined);
      const found = alive[names.indexOf(info?.cluster?.leader ?? "")];
      if (found !== undefined) return found;
    }
    return undefined;
  }, "a leader of the stream");
}
