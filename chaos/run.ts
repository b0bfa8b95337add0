/** One run: real processes, a real store, the faults of the plan, and then peace until everything is done. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { type Baton, connect } from "../src/index.ts";
import { Member, type Role } from "./cast.ts";
import { readHistory } from "./checker/read-history.ts";
import { Faults } from "./faults/faults.ts";
import { planFaults } from "./faults/plan.ts";
import { Proxy } from "./faults/proxy.ts";
import { now } from "./history/clock.ts";
import { type Recorder, recorder } from "./history/recorder.ts";
import { itemOf } from "./process/item-of.ts";
import { LEVELS, QUEUE } from "./scene.ts";
import { marginMs, type Settings } from "./settings.ts";
import { startStore } from "./stores.ts";

/** A submitter repeats itself until the store is back, and ends then. */
const RETIRE_MS = 15_000;
/** Whoever submits so many and no more has done so by then, also on a machine with much else to do. */
const ENDED_MS = 30_000;
const LOOK_EVERY_MS = 100;
/** Questions to the store at a time, when all is over. */
const ASKED_AT_ONCE = 64;
/** Dead letters at a time. */
const PAGE = 100;

/** Writes the histories into the folder. @param watch is told what happens to whom, in words */
export async function run(settings: Settings, folder: string, watch?: (story: string) => void): Promise<void> {
  const { leaseMs, seed, store: storeName, control } = settings;
  const record = recorder(folder, "run");
  const exited = (process: string, trouble: string | undefined): void =>
    record({ type: "exited", process, ...(trouble === undefined ? {} : { trouble }) });
  await using store = await startStore(storeName, folder);
  const registers = join(folder, "registers.socket");
  await using _registers = await startRegisters(folder, registers);
  const proxies = new Map<Member, Proxy>();
  const cast: Member[] = [];
  try {
    const place = async (role: Role, number: number): Promise<Member> => {
      const proxy = new Proxy();
      const url = store.url(await proxy.open(store.ports));
      const { keys, submitEveryMs } = settings;
      const part = { place: number, seed: seed * 1_000 + cast.length * 37, store: storeName, url, folder };
      const flaw = control === undefined ? {} : { control };
      const limit = settings.calls === undefined ? {} : { calls: settings.calls };
      const member = new Member(role, { ...part, registers, leaseMs, keys, submitEveryMs, ...flaw, ...limit }, exited);
      cast.push(member);
      if (store.ports.length > 0) proxies.set(member, proxy);
      return member;
    };
    const workers: Member[] = [];
    const submitters: Member[] = [];
    for (let number = 0; number < settings.workers; number += 1) workers.push(await place("worker", number));
    for (let number = 0; number < settings.submitters; number += 1) submitters.push(await place("submitter", number));

    await using baton = await connect(store.url(store.ports), { onEvent: () => undefined });
    // Streams, tables and levels are made once, before everybody wants them at the same time.
    await baton.queue(QUEUE, { levels: LEVELS }).levels();
    record({
      type: "run",
      store: storeName,
      seed,
      leaseMs,
      marginMs: marginMs(leaseMs),
      levels: LEVELS,
      ...(control === undefined ? {} : { control }),
    });

    await Promise.all(cast.map((member) => member.start()));
    const startedAt = now();
    const faults = new Faults({ workers, submitters, proxies, store }, (fact) => {
      if (fact.type === "fault") watch?.(`${((now() - startedAt) / 1_000).toFixed(1)} s: ${fact.story}`);
      record(fact);
    });
    await faults.follow(planFaults(settings), startedAt);
    await wait(Math.max(0, startedAt + settings.forMs - now()));
    if (settings.calls !== undefined) await Promise.all(submitters.map((member) => member.ended(ENDED_MS)));
    await Promise.all(submitters.map((member) => member.retire(RETIRE_MS)));
    await drain(baton, settings.drainMs, record);
    await Promise.all(workers.map((member) => member.retire(RETIRE_MS)));
    await askForFinals(baton, folder, record);
    await askForDeadLetters(baton, record);
  } finally {
    await Promise.all(cast.map((member) => member.kill()));
    for (const proxy of proxies.values()) proxy.close();
  }
}

async function startRegisters(folder: string, path: string): Promise<AsyncDisposable> {
  const child = fork(join(import.meta.dirname, "register", "main.ts"), [folder, path]);
  const exited = once(child, "exit");
  await once(child, "message");
  return {
    [Symbol.asyncDispose]: async () => {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}

async function drain(baton: Baton, withinMs: number, record: Recorder): Promise<void> {
  const end = now() + withinMs;
  for (;;) {
    const [report] = await baton.queues();
    const left = report === undefined ? 0 : report.waiting + report.delayed + report.running;
    if (left === 0 || now() > end) {
      record({ type: "drained", left });
      return;
    }
    await wait(LOOK_EVERY_MS);
  }
}

/** Of what has an id the store knows how it ended. */
async function askForFinals(baton: Baton, folder: string, record: Recorder): Promise<void> {
  const queue = baton.queue(QUEUE, { levels: LEVELS });
  const named = new Map<string, string>();
  for (const fact of readHistory(folder)) {
    // The first under an id is the item; whatever came later is a copy that must never run.
    if (fact.type === "submit-sent" && fact.id !== undefined && fact.id === fact.item) named.set(fact.item, fact.id);
  }
  const waiting = [...named];
  const askOn = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const [item, id] = next;
      record({ type: "final", item, state: (await queue.item(id))?.state ?? "missing" });
    }
  };
  await Promise.all(Array.from({ length: ASKED_AT_ONCE }, askOn));
}

async function askForDeadLetters(baton: Baton, record: Recorder): Promise<void> {
  const queue = baton.queue(QUEUE, { levels: LEVELS });
  const items: string[] = [];
  for (let after: string | undefined; ;) {
    const page = await queue.dead({ limit: PAGE, ...(after === undefined ? {} : { after }) });
    items.push(...page.map(({ payload }) => itemOf(payload)));
    after = page.at(-1)?.id;
    if (after === undefined) break;
  }
  record({ type: "dead-letters", items });
}
