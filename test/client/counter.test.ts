/**
 * Sixteen processes count up one counter under one lock, while some are killed and some are stopped. Where the fence is
 * checked, no count is lost. BATON_COUNT_SECONDS makes it longer. (Consul: `test/locks/consul-processes.test.ts`.)
 */
import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { startNatsServer } from "../../servers/nats-server.ts";
import { COUNTERS, draw } from "../kit/draw.ts";
import { Random } from "../kit/random.ts";
import { Counter, lostUpdates } from "./counter/counter.ts";

const PROCESSES = 16;
const LEASE_MS = 1_000;
const SECONDS = Number(process.env["BATON_COUNT_SECONDS"] ?? 3);
const FAULT_EVERY_MS = 2_000;

interface Result {
  readonly counted: number;
  readonly lost: number;
  readonly refused: number;
}

class Crew {
  readonly #members = new Set<ChildProcess>();
  readonly #args: readonly string[];
  readonly #random: Random;
  #ended = 0;

  constructor(args: readonly string[], random: Random) {
    this.#args = args;
    this.#random = random;
  }

  async hire(): Promise<void> {
    const member = fork(join(import.meta.dirname, "counter/process.ts"), this.#args);
    this.#members.add(member);
    await Promise.race([once(member, "message"), once(member, "exit")]);
    member.once("exit", (_, signal) => (this.#ended += signal === "SIGKILL" ? 0 : 1));
    assert.equal(member.exitCode, null);
  }

  /** Those that ended without having been killed. */
  get ended(): number {
    return this.#ended;
  }

  /** Half are killed and replaced, half are stopped for longer than their lease. */
  async suffer(forMs: number): Promise<void> {
    const endsAt = performance.now() + forMs;
    const recovering: Promise<unknown>[] = [];
    while (performance.now() < endsAt) {
      await wait(FAULT_EVERY_MS);
      const member = this.#random.pick([...this.#members]);
      if (this.#random.chance(0.5)) {
        this.#members.delete(member);
        member.kill("SIGKILL");
        recovering.push(this.hire());
      } else {
        member.kill("SIGSTOP");
        recovering.push(wait(LEASE_MS * (1.5 + this.#random.next())).then(() => member.kill("SIGCONT")));
      }
    }
    await Promise.all(recovering);
  }

  async dismiss(): Promise<void> {
    await Promise.all(
      Array.from(this.#members, async (member) => {
        if (member.exitCode !== null || member.signalCode !== null) return;
        const gone = once(member, "exit");
        member.kill("SIGKILL");
        await gone;
      }),
    );
  }
}

async function count(context: TestContext, url: (folder: string) => string): Promise<Result> {
  const folder = mkdtempSync(join(tmpdir(), "baton-counter-"));
  const file = join(folder, "counter.db");
  const seed = Number(process.env["BATON_SEED"] ?? Date.now() % 1_000_000);
  context.diagnostic(`BATON_SEED=${seed}`);
  const counter = new Counter(file, true);
  const crew = new Crew([url(folder), file, "checked", String(LEASE_MS)], new Random(seed));
  try {
    await Promise.all(Array.from({ length: PROCESSES }, () => crew.hire()));
    await crew.suffer(SECONDS * 1_000);
  } finally {
    await crew.dismiss();
  }
  assert.equal(crew.ended, 0, "nobody ends by itself");
  const counted = counter.counted();
  const result = { counted: counted.length, lost: lostUpdates(counted).length, refused: counter.refused() };
  assert.ok(
    counted.every(({ fence }, index) => fence >= (counted[index - 1]?.fence ?? 0)),
    "fences rise",
  );
  counter.close();
  rmSync(folder, { recursive: true, force: true });
  context.diagnostic(`${result.counted} counts, ${result.refused} refused because they came too late`);
  return result;
}

describe("a counter under a lock", { timeout: 300_000 }, () => {
  test("SQLite: no count is lost", { skip: draw.leavesOut(COUNTERS, "SQLite") }, async (context) => {
    const { counted, lost } = await count(context, (folder) => `sqlite:${join(folder, "locks.db")}`);
    assert.ok(counted > 0);
    assert.equal(lost, 0);
  });

  test("NATS: no count is lost", { skip: draw.leavesOut(COUNTERS, "NATS") }, async (context) => {
    await using server = await startNatsServer();
    const { counted, lost } = await count(context, () => server.url);
    assert.ok(counted > 0);
    assert.equal(lost, 0);
  });

  test("a lost count would be seen", () => {
    const fence = 1;
    assert.deepEqual(
      lostUpdates([
        { n: 1, fence },
        { n: 2, fence },
        { n: 3, fence },
      ]),
      [],
    );
    assert.deepEqual(
      lostUpdates([
        { n: 1, fence },
        { n: 2, fence },
        { n: 2, fence },
      ]),
      [{ n: 2, fence }],
    );
  });
});
