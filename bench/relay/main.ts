/**
 * What the relay costs: `npm run bench:relay`.
 *
 * 1. 10,000 small messages to a receiver that answers at once: by calling it directly, and through the relay from a
 *    Baton queue in memory and in SQLite with its full durability. All with the same number of requests at a time, one
 *    after the other, in this process; the receiver has its own.
 * 2. 1,000 deliveries of 30 s each, in flight at once in one process: its largest memory.
 *
 * `--messages N`, `--slow N`, `--seconds N` make it smaller.
 */
import { type ChildProcess, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Agent, request } from "undici";
import { connect } from "../../src/index.ts";
import { batonSource, createRelay, DEFAULT_HTTP, DEFAULT_RETRY } from "../../src/relay/index.ts";

const { values } = parseArgs({
  options: {
    messages: { type: "string", default: "10000" },
    slow: { type: "string", default: "1000" },
    seconds: { type: "string", default: "30" },
  },
});
const MESSAGES = Number(values.messages);
const AT_A_TIME = 32;
const ROUNDS = 3;

/** Milliseconds for all messages: by the clock, and of this process's processor time. */
interface Cost {
  readonly tookMs: number;
  readonly cpuMs: number;
}

const PAYLOAD = { do: "paint", color: "red", note: "x".repeat(100) };

const here = import.meta.dirname;
const started: ChildProcess[] = [];
const folder = mkdtempSync(join(tmpdir(), "baton-bench-"));
try {
  const receiver = await startReceiver(0);
  console.log(`${MESSAGES} messages of ${JSON.stringify(PAYLOAD).length} bytes, ${AT_A_TIME} at a time\n`);
  await direct(receiver.url, Math.min(MESSAGES, 2_000)); // Both processes have compiled what they run.
  const ways = {
    "calling the receiver directly": () => direct(receiver.url, MESSAGES),
    "through the relay, memory": () => relayed(receiver.url, "memory:"),
    "through the relay, SQLite": () => relayed(receiver.url, `sqlite:${join(folder, `bench-${performance.now()}.db`)}`),
  };
  const costs = new Map<string, Cost[]>(Object.keys(ways).map((way) => [way, []]));
  // In turns, and the median of each: a machine that others use is slow for a while, not for one of them.
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [way, run] of Object.entries(ways)) costs.get(way)?.push(await run());
  }
  const base = median(costs.get("calling the receiver directly") ?? []);
  for (const [way, found] of costs) print(way, median(found), base);
  await slow(Number(values.slow), Number(values.seconds));
} finally {
  for (const child of started) child.kill();
  rmSync(folder, { recursive: true, force: true });
}

async function startReceiver(delayMs: number): Promise<{ url: string; child: ChildProcess }> {
  const child = fork(join(here, "receiver.ts"), [String(delayMs)]);
  started.push(child);
  const { port } = await new Promise<{ port: number }>((resolve) => child.once("message", resolve as () => void));
  return { url: `http://127.0.0.1:${port}/`, child };
}

async function direct(url: string, count: number): Promise<Cost> {
  const dispatcher = new Agent({ connections: AT_A_TIME });
  const body = JSON.stringify(PAYLOAD);
  let left = count;
  const [began, before] = [performance.now(), process.cpuUsage()];
  await Promise.all(
    Array.from({ length: AT_A_TIME }, async () => {
      while (left > 0) {
        left -= 1;
        const headers = { "content-type": "application/json" };
        const response = await request(url, { dispatcher, method: "POST", headers, body });
        await response.body.dump();
      }
    }),
  );
  const cost = costSince(began, before);
  await dispatcher.close();
  return cost;
}

async function relayed(url: string, store: string): Promise<Cost> {
  await using baton = await connect(store);
  const queue = baton.queue("cars");
  for (let index = 0; index < MESSAGES; index += 1_000) {
    const part = Array.from({ length: Math.min(1_000, MESSAGES - index) }, (_, offset) => index + offset);
    await queue.submitMany(part.map((number) => ({ key: `car${number}`, payload: PAYLOAD })));
  }
  const all = Promise.withResolvers<void>();
  let done = 0;
  const source = {
    name: "cars",
    weight: 1,
    retry: DEFAULT_RETRY,
    deadLetter: { to: "source" } as const,
    open: () => batonSource({ name: "cars", store: baton, queue: "cars" }),
  };
  const [began, before] = [performance.now(), process.cpuUsage()];
  const relay = await createRelay(
    {
      routes: [
        {
          name: "main",
          sources: [source],
          choice: "strict",
          concurrency: AT_A_TIME,
          transforms: [],
          key: undefined,
          form: { type: "raw" },
          processor: { ...DEFAULT_HTTP, target: { type: "url", url } },
        },
      ],
      keys: undefined,
      admin: undefined,
      graceMs: 10_000,
    },
    {
      onEvent: ({ type }) => {
        if (type === "done" && (done += 1) === MESSAGES) all.resolve();
      },
    },
  );
  await all.promise;
  const cost = costSince(began, before);
  await relay.stop();
  return cost;
}

async function slow(count: number, seconds: number): Promise<void> {
  const { url, child: receiver } = await startReceiver(seconds * 1_000);
  const relay = fork(join(here, "slow.ts"), [url, String(count)], { execArgv: [] });
  started.push(relay);
  const report = await new Promise<{ done: number; inWork: number; rss: number; tookMs: number }>((resolve) =>
    relay.once("message", resolve as () => void),
  );
  const { most } = await new Promise<{ most: number }>((resolve) => {
    receiver.once("message", resolve as () => void);
    receiver.send("how many?");
  });
  console.log(
    `\n${count} deliveries of ${seconds} s: ${report.done} done in ${(report.tookMs / 1_000).toFixed(1)} s, ` +
      `${most} at the receiver at once, at most ${(report.rss / 1e6).toFixed(0)} MB in the relay's process`,
  );
}

function costSince(began: number, before: NodeJS.CpuUsage): Cost {
  const { user, system } = process.cpuUsage(before);
  return { tookMs: performance.now() - began, cpuMs: (user + system) / 1_000 };
}

function median(costs: readonly Cost[]): Cost {
  const middle = (numbers: readonly number[]): number =>
    numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? Number.NaN;
  return { tookMs: middle(costs.map(({ tookMs }) => tookMs)), cpuMs: middle(costs.map(({ cpuMs }) => cpuMs)) };
}

function print(way: string, cost: Cost, base: Cost): void {
  const each = (ms: number): string => `${((ms * 1_000) / MESSAGES).toFixed(0)} µs`;
  const added = (kind: keyof Cost): string =>
    cost === base ? "" : ` (${each(cost[kind] - base[kind])} added, ${(cost[kind] / base[kind]).toFixed(2)} ×)`;
  console.log(
    `${way.padEnd(32)} per message ${each(cost.tookMs)}${added("tookMs")}, processor ${each(cost.cpuMs)}${added("cpuMs")}`,
  );
}
