import assert from "node:assert/strict";
import { test } from "node:test";
import { decodeState, encodeState } from "./codec.ts";
import { FENCES_PER_MESSAGE, type KeyItem, type KeyState, NOTHING, type StateLease } from "./state.ts";

const SEQUENCE = 40;

const ITEM: KeyItem = {
  unique: "abc1",
  id: 'an "id"',
  place: 7,
  level: 1,
  attempts: 2,
  submittedAt: 1_700_000_000_000,
  payload: { type: "text/plain", body: 'é "quoted"\n' },
  headers: { trace: "a\\b" },
  keepMs: 1_000,
  replaceable: true,
  dueAt: 1_700_000_001_000,
  tried: [{ end: "failed", attempt: 2, at: 1_700_000_000_500, worker: "w", failure: { message: "é", code: "E" } }],
  losses: 1,
};

const LEASE: StateLease = {
  fence: 99,
  session: "session1",
  worker: 'a "worker"\n\\',
  since: 1_700_000_000_000,
  leaseMs: 30_000,
  nonce: "abc2",
  progress: 0.25,
  cancelRequested: true,
  covered: 3,
  toCancel: ["abc4"],
};

const FULL: KeyState = {
  kind: "running",
  nonce: "abc3",
  items: [ITEM, { ...ITEM, unique: "abc4" }],
  taken: [0, 5],
  takenLeft: 2,
  cut: [6],
  announced: 8,
  more: "closing",
  line: 1,
  paused: true,
  alone: 2,
  lease: LEASE,
  wanted: [LEASE, { ...LEASE, nonce: "abc5" }],
  below: [3, 4],
  recordBelow: true,
  todo: [
    { type: "wake", dueAt: 5 },
    { type: "dead", item: ITEM, at: 6, failure: { message: "why" } },
  ],
};

const plain = (state: KeyState): unknown => JSON.parse(JSON.stringify(state));

test("a state with everything in it is read as it was written", () => {
  const data = encodeState(FULL);
  assert.deepEqual(plain(decodeState(Buffer.from(data), SEQUENCE)), plain(FULL));
});

test("a state with nothing in it is read as it was written", () => {
  const idle = { ...NOTHING, nonce: "abc6" };
  assert.equal(encodeState(idle), '{"k":"idle","n":"abc6"}\n');
  assert.deepEqual(plain(decodeState(Buffer.from(encodeState(idle)), SEQUENCE)), plain(idle));
});

test("what is of this very message gets its number when it is read", () => {
  const state: KeyState = {
    ...NOTHING,
    kind: "running",
    items: [{ ...ITEM, place: 0 }],
    lease: { ...LEASE, fence: 0 },
  };
  const read = decodeState(Buffer.from(encodeState(state)), SEQUENCE);
  assert.equal(read.items[0]?.place, SEQUENCE);
  assert.equal(read.lease?.fence, SEQUENCE * FENCES_PER_MESSAGE);
});
