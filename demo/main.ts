/**
 * Four worker processes share eight cars through one SQLite file. Items of three levels come in; one worker is
 * killed in the middle of its work, and another takes its car over. In the end, what the processes wrote down is checked.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { connect, type Queue, type Receipt } from "../src/index.ts";
import { Crew } from "./crew.ts";
import { now, readHistory, recorder } from "./history.ts";
import { openStage } from "./stage.ts";
import { DOOMED, type Job, KILL_AFTER_MS, LEASE_MS, QUEUE, schedule, WORKERS } from "./story.ts";
import { summary } from "./summary.ts";
import { verify } from "./verify.ts";

const DRAW_EVERY_MS = 100;
/** The story takes ten seconds; a machine on which it takes this long has a problem that should be seen. */
const GIVE_UP_AFTER = "60s";

async function play(folder: string, crew: Crew, record: ReturnType<typeof recorder>): Promise<boolean> {
  const store = `sqlite:${join(folder, "demo.db")}`;
  await using baton = await connect(store);
  const cars = baton.queue<Job>(QUEUE, { lease: LEASE_MS });
  await cars.levels();
  await crew.start(store, folder, WORKERS);

  const begunAt = now();
  const stage = openStage();
  const show = async (): Promise<void> => {
    const keys = await cars.keys();
    stage.show({ history: readHistory(folder), keys, begunAt, at: now(), wall: Date.now() });
  };
  const over = new AbortController();
  try {
    const shown = showUntil(over.signal, show);
    const killed = killTheDoomed(folder, crew, over.signal);
    const receipts = await submitAll(cars, begunAt, record);
    await Promise.all(receipts.map((receipt) => receipt.outcome({ timeout: GIVE_UP_AFTER })));
    await killed;
    over.abort();
    await shown;
    await show();
  } finally {
    over.abort();
    stage.close();
  }
  await crew.dismiss();
  const history = readHistory(folder);
  const rules = verify(history);
  process.stdout.write(`\n${summary(history, rules).join("\n")}\n`);
  return rules.every(({ violations }) => violations.length === 0);
}

async function submitAll(
  cars: Queue<Job>,
  begunAt: number,
  record: ReturnType<typeof recorder>,
): Promise<readonly Receipt[]> {
  const receipts: Receipt[] = [];
  for (const { atMs, item, car, level, job } of schedule()) {
    await wait(Math.max(0, begunAt + atMs - now()));
    const from = now();
    receipts.push(await cars.submit(car, job, { level, id: item }));
    record({ type: "submit", from, at: now(), item, car, level });
  }
  return receipts;
}

/** Waits until somebody is at the item that takes for ever, and kills whoever that is. */
async function killTheDoomed(folder: string, crew: Crew, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const start = readHistory(folder).find((one) => one.type === "start" && one.item === DOOMED.item);
    if (start?.type === "start") {
      await wait(KILL_AFTER_MS);
      return crew.kill(start.worker);
    }
    await wait(DRAW_EVERY_MS);
  }
}

async function showUntil(signal: AbortSignal, show: () => Promise<void>): Promise<void> {
  while (!signal.aborted) {
    await show();
    await wait(DRAW_EVERY_MS, undefined, { signal }).catch(() => undefined);
  }
}

const folder = mkdtempSync(join(tmpdir(), "baton-demo-"));
const record = recorder(folder, "main");
const crew = new Crew(record);
const SHOW_CURSOR_AND_WRAP = "\u001b[?25h\u001b[?7h";

for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const) {
  process.once(signal, () => {
    if (process.stdout.isTTY) process.stdout.write(SHOW_CURSOR_AND_WRAP);
    void crew.abandon().finally(() => {
      rmSync(folder, { recursive: true, force: true });
      process.exit(code);
    });
  });
}

try {
  process.exitCode = (await play(folder, crew, record)) ? 0 : 1;
} finally {
  await crew.abandon();
  rmSync(folder, { recursive: true, force: true });
}
