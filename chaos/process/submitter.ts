/** A submitter process: items for uneven keys, at three levels, with and without ids, one by one and in bursts. */
import { setTimeout as wait } from "node:timers/promises";
import { BatonError, connect } from "../../src/index.ts";
import { Random } from "../../test/kit/random.ts";
import { recorder } from "../history/recorder.ts";
import { type Job, LEVELS, QUEUE } from "../scene.ts";
import { openEngine } from "./open-engine.ts";
import { readPart } from "./part.ts";
import { watchStalls } from "./stall-watch.ts";

/** After a call that failed, or whose answer was lost. */
const AGAIN_MS = 100;
/** As many as a worker may finish before it is written that they are done, and a few more. */
const BURST = 16;
const REMEMBERED = 32;
/** The lease that the lengths of work below are made for. */
const FULL_LEASE_MS = 2_000;

const part = readPart();
const record = recorder(part.folder, part.name);
watchStalls(record);
const random = new Random(part.seed);
const baton = await connect(await openEngine(part, record), { onEvent: () => undefined });
const queue = baton.queue<Job>(QUEUE, { levels: LEVELS, lease: part.leaseMs });

interface Named {
  readonly id: string;
  readonly key: string;
}

/** Accepted under an id: to be submitted once more, now and then. */
const accepted: Named[] = [];
let made = 0;
const stop = new AbortController();

function nextItem(): string {
  made += 1;
  return `${part.name}-${made}`;
}

/** The square makes the first keys much more frequent than the last. */
function nextKey(): number {
  return Math.floor(random.next() ** 2 * part.keys);
}

function nextJob(item: string, isHot: boolean): Job {
  const dice = random.next();
  // Longer than its lease every now and then; on the busiest keys that would be a traffic jam and nothing else.
  const drawnMs = dice < 0.7 || isHot ? random.between(2, 40) : random.between(100, dice < 0.85 ? 400 : 3_500);
  const fate = random.next();
  return {
    item,
    workMs: Math.round((drawnMs * part.leaseMs) / FULL_LEASE_MS),
    ...(fate < 0.02 ? { fails: "once" } : fate < 0.025 ? { fails: "fatal" } : {}),
    ...(random.chance(0.3) ? { careless: true } : {}),
  };
}

/** With an id one may try until it is certain. */
async function submitNamed(): Promise<void> {
  const item = nextItem();
  const place = nextKey();
  const key = `key${place}`;
  const job = nextJob(item, place < part.keys / 20);
  const level = random.pick(LEVELS);
  while (!(await tried(queue.submit(key, job, { id: item, level })))) await wait(AGAIN_MS);
  accepted.push({ id: item, key });
  if (accepted.length > REMEMBERED) accepted.shift();
}

/** The same id with another payload, and perhaps for another key: it must get the first one's receipt, and never run. */
async function submitAgain(): Promise<void> {
  if (accepted.length === 0) return;
  const { id, key } = random.pick(accepted);
  made += 1;
  const item = `${id}-copy-${made}`;
  const place = random.chance(0.5) ? key : `key${nextKey()}`;
  await tried(queue.submit(place, { item, workMs: 1 }, { id, level: random.pick(LEVELS) }));
}

/** The latest: it may still wait, or run. */
async function takeBack(): Promise<void> {
  const latest = accepted.at(-1);
  if (latest !== undefined) await tried(queue.cancel(latest.id));
}

/** Without an id one may not repeat: when the answer is lost nobody knows, and the history says so. */
async function submitPlain(): Promise<void> {
  const place = nextKey();
  const job = nextJob(nextItem(), place < part.keys / 20);
  await tried(queue.submit(`key${place}`, job, { level: random.pick(LEVELS) }));
}

/** Many short ones for one key: whoever has the key goes from one to the next. */
async function submitBurst(): Promise<void> {
  const key = `key${nextKey()}`;
  const submits = Array.from({ length: BURST }, () => ({
    key,
    payload: { item: nextItem(), workMs: random.between(0, 4) },
    level: random.chance(0.9) ? "normal" : "high",
  }));
  await tried(queue.submitMany(submits));
}

async function tried(call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    if (error instanceof BatonError) return false;
    throw error;
  }
}

process.on("SIGINT", () => undefined);
process.once("disconnect", () => stop.abort());
process.send?.("ready");

for (let calls = 0; !stop.signal.aborted && calls < (part.calls ?? Infinity); calls += 1) {
  const dice = random.next();
  if (dice < 0.5) await submitNamed();
  else if (dice < 0.54) await submitAgain();
  else if (dice < 0.57) await takeBack();
  else if (dice < 0.97) await submitPlain();
  else await submitBurst();
  await wait(random.between(0, 2 * part.submitEveryMs));
}
await baton.close();
process.exit();
