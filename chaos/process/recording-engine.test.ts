/** What is written down of a run names each of its items, whoever reports it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { EndedItem, Grant } from "../../src/engine/port.ts";
import { MemoryStore } from "../../src/engines/memory/index.ts";
import type { Submission } from "../../src/index.ts";
import type { Recorder } from "../history/recorder.ts";
import { RecordingEngine } from "./recording-engine.ts";

const QUEUE = "q";
const LEASE_MS = 60_000;

test("a run is written down with all that it covers, and with what each report ended", async () => {
  const facts: Record<string, unknown>[] = [];
  const record: Recorder = (fact) => facts.push({ ...fact });
  const engine = new RecordingEngine(new MemoryStore().connect(), record);
  await engine.declare({ queue: QUEUE });
  await engine.submit(["a", "b", "c", "d"].map(submission));
  const { lease, item, behind = [] } = await claimed(engine);
  const ids = [item, ...behind].map(({ id }) => id);
  await engine.renew([{ lease, leaseMs: LEASE_MS, ended: ended(ids.slice(0, 1)) }]);
  await engine.settle([{ lease, ending: { type: "done" } }]);
  const rest = await claimed(engine);
  await engine.settle([{ lease: rest.lease, ended: ended([rest.item.id]), ending: { type: "release" } }]);
  await engine.close();
  const told = facts.filter(({ type }) => type !== "submit-sent" && type !== "submit");
  const done = (name: string): unknown => [{ item: name, ending: "done" }];
  assert.deepEqual(
    told.map(({ type, item: named, behind: covered, ended: before, ending }) => [type, named, covered, before, ending]),
    [
      ["grant", "a", [covering("b", ids[1]), covering("c", ids[2]), covering("d", ids[3])], undefined, undefined],
      ["renew", undefined, undefined, done("a"), undefined],
      ["settle-sent", "b", undefined, undefined, "done"],
      ["settle", "b", undefined, undefined, "done"],
      ["grant", "c", [covering("d", ids[3])], undefined, undefined],
      ["settle-sent", "d", undefined, done("c"), "release"],
      ["settle", "d", undefined, done("c"), "release"],
    ],
  );
});

function submission(item: string): Submission {
  return {
    queue: QUEUE,
    key: "k",
    level: "normal",
    mode: "fifo",
    keyLimit: 10,
    queueLimit: 10,
    payload: { type: "application/json", body: JSON.stringify({ item }) },
    delayMs: 0,
    keepMs: 0,
  };
}

function covering(item: string, id: string | undefined): unknown {
  return { item, id, attempt: 1 };
}

function ended(ids: readonly string[]): readonly EndedItem[] {
  return ids.map((id) => ({ id, ending: { type: "done" } }));
}

async function claimed(engine: RecordingEngine): Promise<Grant> {
  const request = { queue: QUEUE, worker: "w", max: 1, items: 5, leaseMs: LEASE_MS, patienceMs: LEASE_MS };
  const [grant] = await engine.claim({ ...request, signal: new AbortController().signal });
  assert.ok(grant, "What waits is handed out.");
  return grant;
}
