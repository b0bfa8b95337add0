/**
 * A worker that is as far ahead of what is written as it may be: its next settlement waits for that. While it does, it counts as one that
 * brings its key's next item, and the claim that waits leaves its slot to it. If it then does not go on with its key, somebody has to tell
 * the claim, because nothing else happens.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Engine, Grant } from "../../src/engine/port.ts";
import { NatsEngine } from "../../src/engines/nats/engine.ts";
import { claim, entry } from "../cars.ts";
import { CALM_LINE } from "../jetstream/faults.ts";
import { virtualServer } from "../jetstream/virtual-server.ts";
import { untilQuiet } from "../simulation/turns.ts";

/** Longer than a worker may go on with a key. */
const SLOW_MS = 150;
const STEP_MS = 1;
/** A claim that nobody tells is told when its pulls are over, after half a minute. */
const WITHIN_MS = 1_000;

test("a settlement that waited for its streak, and then does not go on, leaves its slot to others", async () => {
  const { server, clock, pass } = virtualServer();
  const connection = server.connect();
  const engine: Engine = new NatsEngine({ wire: connection, clock, name: "p", random: () => 0.5 });
  const played = async <T>(work: Promise<T>): Promise<T | undefined> => {
    const results: T[] = [];
    void work.then((value) => results.push(value));
    for (let ms = 0; ms < WITHIN_MS && results.length === 0; ms += STEP_MS) {
      await untilQuiet();
      pass(STEP_MS);
    }
    await untilQuiet();
    return results[0];
  };
  const ask = (): Promise<readonly Grant[]> => engine.claim({ ...claim, signal: new AbortController().signal });
  const settle = (grants: readonly Grant[] | undefined): Promise<unknown> =>
    engine.settle((grants ?? []).map(({ lease }) => ({ lease, ending: { type: "done" } })));
  const keyOf = (grants: readonly Grant[] | undefined): string | undefined => grants?.[0]?.item.key;

  await played(engine.declare({ queue: "cars" }));
  const plain = { ...entry, key: "a", keyLimit: 5_000, queueLimit: 5_000 };
  // The third has an id: it may not start before it is written that those before it are done.
  await played(engine.submit([plain, plain]));
  await played(engine.submit([{ ...plain, id: "third" }]));
  await played(engine.submit([{ ...plain, key: "b" }]));
  const first = await played(ask());
  assert.equal(keyOf(first), "a");

  // From here on the server's answers take so long that the turn on this key is over when they come.
  connection.faults = { ...CALM_LINE, delayMs: (way) => (way === "from server" ? SLOW_MS : 0) };
  const asked = ask();
  const settledFirst = settle(first);
  const second = await played(asked);
  assert.equal(keyOf(second), "a", "the second starts ahead of what is written");
  const third = ask();
  const settledSecond = settle(second);
  assert.deepEqual(await played(Promise.all([settledFirst, settledSecond])), [["settled"], ["settled"]]);
  assert.equal(keyOf(await played(third)), "b");
});
