/** Looks at several keys with one request: one of them must not keep the others from being started. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Stored } from "../../src/engines/nats/api-replies.ts";
import { encodeState } from "../../src/engines/nats/codec.ts";
import type { KeyStore } from "../../src/engines/nats/key-store.ts";
import { StartLooks } from "../../src/engines/nats/start-looks.ts";
import { NOTHING } from "../../src/engines/nats/state.ts";

const ENOUGH = 20;

function stored(key: string, data: string | Uint8Array): Stored {
  return { subject: `s.run.${key}`, sequence: 7, at: 0, data: Buffer.from(data) };
}

/** @param answer to the names that are asked for */
function looksOf(answer: (names: readonly string[]) => Promise<readonly Stored[]>): StartLooks {
  const js = { isReplicated: () => false, lastOfSome: (_stream: string, names: readonly string[]) => answer(names) };
  const subjects = { stream: "s", record: (key: string) => `s.run.${key}` };
  return new StartLooks({ js, subjects } as unknown as KeyStore);
}

test("keys of one turn share a request, also one that is asked about twice", async () => {
  const asked: (readonly string[])[] = [];
  const looks = looksOf((names) => {
    asked.push(names);
    return Promise.resolve([stored("a", encodeState(NOTHING))]);
  });
  const [first, again, other] = await Promise.all([looks.at("a"), looks.at("a"), looks.at("b")]);
  assert.equal(first?.sequence, 7);
  assert.equal(again?.sequence, 7);
  assert.equal(other, undefined);
  assert.deepEqual(asked, [["s.run.a", "s.run.b"]]);
  await looks.at("a");
  assert.equal(asked.length, 2);
});

test("a record that cannot be read, and a look that fails, mean that nothing is known", async () => {
  const foreign = looksOf(() => Promise.resolve([stored("a", "?"), stored("b", encodeState(NOTHING))]));
  const [unread, read] = await Promise.all([foreign.at("a"), foreign.at("b")]);
  assert.equal(unread, undefined);
  assert.equal(read?.sequence, 7);
  const failing = looksOf(() => Promise.reject(new Error("nobody answers")));
  assert.equal(await failing.at("a"), undefined);
});

test("whether it is worth a look is learnt from the last keys", () => {
  const looks = looksOf(() => Promise.resolve([]));
  assert.equal(looks.areWorth, true, "nothing is known");
  for (let count = 0; count < ENOUGH; count += 1) looks.count(false);
  assert.equal(looks.areWorth, false, "looking is not worth its while");
  for (let count = 0; count < ENOUGH; count += 1) looks.count(true);
  assert.equal(looks.areWorth, true, "looking is worth its while");
});
