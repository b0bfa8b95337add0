import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../../test/manual-clock.ts";
import type { Stored } from "./api-replies.ts";
import { Forgotten } from "./forgotten.ts";
import type { KeyStore } from "./key-store.ts";
import { type KeyState, NOTHING, type Seen } from "./state.ts";

const LONG_MS = 10_000;

interface Stage {
  /** Sequences of ready messages, by key. */
  readonly stored: Map<string, number>;
  readonly floor: number;
  readonly states: ReadonlyMap<string, Seen>;
}

/** Looks once, and tells the keys that were announced anew. */
async function announced({ stored, floor, states }: Stage, meanwhile: () => void = () => undefined): Promise<string[]> {
  const clock = new ManualClock();
  const found: string[] = [];
  const next = (_stream: string, _subject: string, from: number): Promise<Stored | undefined> => {
    const [first] = [...stored].filter(([, sequence]) => sequence >= from).toSorted(([, a], [, b]) => a - b);
    if (first === undefined) return Promise.resolve(undefined);
    return Promise.resolve({ subject: `s.1.0.${first[0]}`, sequence: first[1], at: 0, data: new Uint8Array() });
  };
  const store = {
    clock,
    subjects: { stream: "queue", readyAt: () => "s.1.>", readyConsumer: () => "ready-1" },
    js: { next, consumerInfo: () => Promise.resolve({ ack_floor: { stream_seq: floor } }) },
    change: (key: string, change: (seen: Seen) => KeyState | undefined) => {
      const written = change(states.get(key) ?? { sequence: 0, state: NOTHING });
      if (written?.announced === 0) found.push(key);
      return Promise.resolve(undefined);
    },
  };
  const forgotten = new Forgotten(store as unknown as KeyStore, () => false);
  forgotten.look(1);
  await clock.stall(1);
  meanwhile();
  await clock.stall(LONG_MS);
  return found;
}

const ready = (sequence: number, announcedBy = 0): Seen => ({
  sequence,
  state: { ...NOTHING, kind: "ready", announced: announcedBy },
});

test("keys that a consumer takes for acknowledged are announced anew", async () => {
  const stored = new Map([
    ["plain", 10],
    ["record", 20],
    ["later", 40],
  ]);
  const states = new Map([
    ["plain", ready(10)],
    ["record", ready(25, 20)],
    ["later", ready(40)],
  ]);
  assert.deepEqual(await announced({ stored, floor: 30, states }), ["plain", "record"]);
});

test("what the consumer still has is left to it, and so is a key that has moved on", async () => {
  const stored = new Map([["key", 10]]);
  assert.deepEqual(await announced({ stored, floor: 9, states: new Map([["key", ready(10)]]) }), []);
  const running: Seen = { sequence: 12, state: { ...NOTHING, kind: "running" } };
  assert.deepEqual(await announced({ stored, floor: 30, states: new Map([["key", running]]) }), []);
});

test("what was only on its way to somebody is none of them", async () => {
  const stored = new Map([["key", 10]]);
  const states = new Map([["key", ready(10)]]);
  assert.deepEqual(await announced({ stored, floor: 30, states }, () => stored.delete("key")), []);
});
