import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { COUNTERS, draw } from "../kit/draw.ts";
import { until } from "../kit/until.ts";
import { type ConsulServer, startConsulServer } from "../../servers/consul-server.ts";

const PROCESSES = 16;
const LEASE_MS = 2_000;
/** Every fault costs Consul's twice the lease, if it hits the holder. */
const FAULTS = 8;
/** Sixteen processes start, and leases run out, on a machine that has other things to do. */
const PATIENCE_MS = 120_000;
const CHILD = join(import.meta.dirname, "children/consul-counter.ts");

interface Counted {
  readonly n: number;
  readonly fence: number;
  readonly pid: number;
}

test(
  "16 processes count under one lock; some are killed, some stopped, Consul is killed: nothing is lost",
  { timeout: 150_000, skip: draw.leavesOut(COUNTERS, "Consul") },
  async () => {
    await using server = await startConsulServer({
      config: { session_ttl_min: "1s", limits: { http_max_conns_per_client: 2_000 } },
    });
    using counter = new Counter();
    const children = new Children(server, counter.file);
    try {
      for (let index = 0; index < PROCESSES; index += 1) children.start();
      await counter.reaches(10);
      for (let fault = 0; fault < FAULTS; fault += 1) {
        // The one that counted last is as likely as any to hold the lock again, or to stand in line.
        const victim = counter.last().pid;
        if (fault === FAULTS / 2) {
          await server.kill();
          await server.restart();
        } else if (fault % 2 === 0) {
          children.kill(victim);
          children.start();
        } else {
          children.stopForAWhile(victim);
        }
        await counter.reaches(counter.last().n + 10);
      }
    } finally {
      await children.end();
    }
    const log = counter.log();
    assert.deepEqual(
      log.map(({ n }) => n),
      log.map((_, index) => index + 1),
      "every count is one more than the last",
    );
    const fences = log.map(({ fence }) => fence);
    assert.deepEqual(
      fences,
      fences.toSorted((a, b) => a - b),
    );
    assert.equal(new Set(fences).size, fences.length);
    // The fence makes up for a lock that is lost, not for one that excludes nobody: only those who were stopped write too late.
    assert.ok(counter.refused() <= FAULTS, `${counter.refused()} writes were refused`);
    assert.ok(new Set(log.map(({ pid }) => pid)).size > PROCESSES / 2, "most processes had their turn");
  },
);

/** The resource that the lock protects, which checks fences. */
class Counter implements Disposable {
  readonly file: string;
  readonly #folder: string;
  readonly #database: DatabaseSync;

  constructor() {
    this.#folder = mkdtempSync(join(tmpdir(), "baton-counter-"));
    this.file = join(this.#folder, "counter.db");
    this.#database = new DatabaseSync(this.file, { timeout: 10_000 });
    this.#database.exec(
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; CREATE TABLE counter (n, fence); " +
        "INSERT INTO counter VALUES (0, 0); CREATE TABLE log (n, fence, pid); CREATE TABLE refused (fence, pid)",
    );
  }

  log(): readonly Counted[] {
    return this.#database.prepare("SELECT n, fence, pid FROM log ORDER BY rowid").all() as unknown as Counted[];
  }

  /** Writes under a fence that was not the highest any more. */
  refused(): number {
    return this.#database.prepare("SELECT 1 FROM refused").all().length;
  }

  last(): Counted {
    return this.log().at(-1) ?? { n: 0, fence: 0, pid: 0 };
  }

  async reaches(n: number): Promise<void> {
    await until(() => this.last().n >= n, `count ${n}`, PATIENCE_MS);
  }

  [Symbol.dispose](): void {
    this.#database.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

class Children {
  readonly #server: ConsulServer;
  readonly #file: string;
  readonly #running = new Map<number, ChildProcess>();

  constructor(server: ConsulServer, file: string) {
    this.#server = server;
    this.#file = file;
  }

  start(): void {
    const args = [CHILD, this.#server.address, this.#file, String(LEASE_MS)];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });
    if (child.pid !== undefined) this.#running.set(child.pid, child);
  }

  kill(pid: number): void {
    this.#running.get(pid)?.kill("SIGKILL");
    this.#running.delete(pid);
  }

  /** Beyond what Consul waits for. */
  stopForAWhile(pid: number): void {
    const child = this.#running.get(pid);
    child?.kill("SIGSTOP");
    setTimeout(() => child?.kill("SIGCONT"), 3 * LEASE_MS);
  }

  async end(): Promise<void> {
    const ends = [...this.#running.values()].map(async (child) => {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    });
    await Promise.all(ends);
  }
}
