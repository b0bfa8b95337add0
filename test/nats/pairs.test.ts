/** Keys that carry a few items each: consumers know them by the first, and they stand otherwise. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { NatsEngine } from "../../src/engines/nats/engine.ts";
import { claim, entry } from "../cars.ts";
import { CALM_LINE } from "../jetstream/faults.ts";
import { virtualServer } from "../jetstream/virtual-server.ts";
import { untilQuiet } from "../simulation/turns.ts";

const KEYS = 200;
const SLOTS = 20;
const STEP_MS = 1;
const WITHIN_MS = 20_000;
/** A start, an end and an acknowledgement for two items, and the looks and pulls that many share. To be refused, to read and to write again takes 2.5. */
const MOST_PER_ITEM = 1.8;

test("keys of two items are started and ended without being refused first", async (context) => {
  const { server, clock, pass } = virtualServer();
  let sent = 0;
  const count = (way: string): boolean => {
    if (way === "to server") sent += 1;
    return false;
  };
  const connect = (name: string): NatsEngine => {
    const wire = server.connect(name === "worker" ? { faults: { ...CALM_LINE, loses: count } } : {});
    return new NatsEngine({ wire, clock, name, random: () => 0.5 });
  };
  const played = async <T>(work: Promise<T>): Promise<T> => {
    const answers: T[] = [];
    void work.then((value) => answers.push(value));
    for (let ms = 0; ms < WITHIN_MS && answers.length === 0; ms += STEP_MS) {
      await untilQuiet();
      pass(STEP_MS);
    }
    return await work;
  };
  const [producer, worker] = [connect("producer"), connect("worker")];
  await played(Promise.all([producer.declare({ queue: "cars" }), worker.declare({ queue: "cars" })]));
  // Whoever claims for the first time has a look at all that is there.
  const first = new AbortController();
  const begun = worker.claim({ ...claim, signal: first.signal });
  await played(untilQuiet());
  first.abort();
  await played(begun);
  const cars = Array.from({ length: KEYS }, (_, index) => ({ ...entry, key: `car ${index}`, queueLimit: KEYS * 4 }));
  for (let round = 0; round < 2; round += 1) await played(producer.submit(cars));
  const ran = new Map<string, number>();
  sent = 0;
  while (ran.size < KEYS) {
    const signal = new AbortController().signal;
    const grants = await played(worker.claim({ ...claim, max: SLOTS, items: 2, signal }));
    const ending = { type: "done" } as const;
    const settlements = grants.map(({ lease, item, behind = [] }) => {
      ran.set(lease.key, 1 + behind.length);
      return { lease, ended: behind.length === 0 ? [] : [{ id: item.id, ending }], ending };
    });
    assert.ok((await played(worker.settle(settlements))).every((result) => result === "settled"));
  }
  context.diagnostic(`${(sent / KEYS / 2).toFixed(2)} messages per item`);
  assert.deepEqual(new Set(ran.values()), new Set([2]));
  assert.ok(sent / KEYS / 2 < MOST_PER_ITEM, `${(sent / KEYS / 2).toFixed(2)} messages per item`);
});
