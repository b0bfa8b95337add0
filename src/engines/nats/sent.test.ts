import assert from "node:assert/strict";
import { test } from "node:test";
import { settled } from "./key-store.ts";
import { decodeState, encodeState, firstState } from "./codec.ts";
import { STAYS_ANNOUNCED, join, totalOf } from "./rules.ts";
import { addTo, firstSent, type Sent, seenOf } from "./sent.ts";
import type { KeyItem, Seen } from "./state.ts";

const BODIES = ['{"a":1}', "", "häuser € 🚗", "},{", "a\nb]}\n", "half \ud83d", "\ude97 half"];

function itemOf(number: number, more: Partial<KeyItem> = {}): KeyItem {
  return {
    unique: `u${number}`,
    id: undefined,
    place: 0,
    level: 1,
    attempts: 0,
    submittedAt: 1_700_000_000_000 + number,
    payload: { type: "application/json", body: BODIES[number % BODIES.length] ?? "" },
    headers: undefined,
    keepMs: 0,
    replaceable: false,
    dueAt: undefined,
    tried: undefined,
    losses: 0,
    ...more,
  };
}

/** The same by the rules, item by item, and by the codec. */
function added({ sequence, state }: Seen, items: readonly KeyItem[], nonce: string, at: number): Seen {
  let next = state;
  for (const item of items) {
    const joining = join(next, item, false, 3, 0, totalOf(next), 1_000_000);
    assert.equal(joining.type, "write");
    if (joining.type === "write") next = joining.state;
    assert.equal(next.announced, STAYS_ANNOUNCED);
  }
  const announced = state.announced === 0 ? sequence : state.announced;
  const data = encodeState({ ...next, nonce, announced });
  return settled(at, decodeState(Buffer.from(data), at));
}

function plain(seen: Seen): unknown {
  return JSON.parse(JSON.stringify(seen));
}

const FIRSTS = [
  itemOf(0),
  itemOf(1, { headers: { trace: '},{"o":3}]}' } }),
  itemOf(2, { id: "mine", keepMs: 5 }),
  itemOf(5, { payload: { type: 'odd "},{" type', body: "x" } }),
];

for (const first of FIRSTS) {
  test(`what is added to a text is what the rules make of it, behind ${JSON.stringify(first.payload.type)}`, () => {
    let sent: Sent = { ...firstSent(first), sequence: 10 } as Sent;
    let seen = settled(10, firstState(first));
    assert.deepEqual(plain(seenOf(sent)), plain(seen));
    for (let step = 1; step <= 12; step += 1) {
      const items = Array.from({ length: 1 + (step % 4) }, (_, index) =>
        itemOf(step * 10 + index, { level: 1 + (index % 2) }),
      );
      const next = addTo(sent, items, `n${step}`);
      assert.ok(next !== undefined);
      seen = added(seen, items, `n${step}`, 10 + step * 7);
      sent = { ...next, sequence: 10 + step * 7 };
      assert.deepEqual(plain(seenOf(sent)), plain(seen));
      assert.equal(sent.count, seen.state.items.length);
    }
  });
}

test("what would change more than the text is left to others", () => {
  const sent: Sent = { ...firstSent(itemOf(0)), sequence: 10 } as Sent;
  assert.equal(addTo(sent, [itemOf(1, { level: 0 })], "n"), undefined, "more urgent");
  assert.equal(addTo(sent, [itemOf(1, { headers: { a: "b" } })], "n"), undefined, "with headers");
  const bytes = itemOf(1, { payload: { type: "application/octet-stream", body: new Uint8Array(3) } });
  assert.equal(addTo(sent, [bytes], "n"), undefined, "bytes");
  assert.equal(firstSent(bytes), undefined, "bytes first");
  const many = Array.from({ length: 64 }, (_, index) => itemOf(index));
  assert.equal(addTo(sent, many, "n"), undefined, "too many");
  assert.notEqual(addTo(sent, many.slice(1), "n"), undefined, "as many as a key may carry");
  const large = itemOf(1, { payload: { type: "text/plain", body: "x".repeat(40_000) } });
  assert.equal(addTo(sent, [large], "n"), undefined, "too large");
});
