import assert from "node:assert/strict";
import { test } from "node:test";
import { Draw, drawFrom } from "./draw.ts";
import { Random } from "./random.ts";

const ALL = ["a", "b", "c", "d", "e"];

test("as many are drawn as were asked for, in their order, and the same for the same seed", () => {
  for (let seed = 0; seed < 50; seed += 1) {
    const drawn = drawFrom(ALL, 3, new Random(seed));
    assert.equal(drawn.length, 3);
    assert.deepEqual(drawn, [...drawn].toSorted());
    assert.deepEqual(drawFrom(ALL, 3, new Random(seed)), drawn);
  }
});

test("each one has its turn", () => {
  const seen = new Set<string>();
  for (let seed = 0; seed < 50; seed += 1) for (const one of drawFrom(ALL, 1, new Random(seed))) seen.add(one);
  assert.deepEqual([...seen].toSorted(), ALL);
});

test("nothing is left out where nothing was drawn", () => {
  for (const environment of [{}, { BATON_DRAW: "all" }]) {
    assert.deepEqual(new Draw(environment).some("letters", ALL, 1), ALL);
    const named = ALL.map((name) => ({ name }));
    assert.deepEqual(new Draw(environment).cases("Valkey", named), named);
  }
});
