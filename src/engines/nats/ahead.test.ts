import assert from "node:assert/strict";
import { test } from "node:test";
import { Ahead } from "./ahead.ts";

/** Of a worker that has been at it for a while. */
function inTheMiddle(): Ahead {
  const ahead = new Ahead(true);
  for (let times = 0; times < 128; times += 1) {
    ahead.ask(1, 0.1, false);
    assert.equal(ahead.depth, 0);
  }
  return ahead;
}

test("as long as a quick worker has to wait, more is started ahead", () => {
  const ahead = inTheMiddle();
  const depths = [1, 2, 3, 4, 5, 6, 7, 8].map(() => {
    ahead.ask(1, 0.1, true);
    return ahead.depth;
  });
  assert.deepEqual(depths, [1, 2, 4, 8, 16, 32, 64, 64]);
  ahead.ask(1, 0.1, false);
  assert.equal(ahead.depth, 64, "it is enough now");
  ahead.wasTooMany();
  assert.equal(ahead.depth, 32);
});

test("no more than a worker works off in a moment", () => {
  const ahead = inTheMiddle();
  for (let times = 0; times < 8; times += 1) ahead.ask(4, 5, true);
  assert.equal(ahead.depth, 8, "four in five milliseconds");
  for (let times = 0; times < 8; times += 1) ahead.ask(4, 15, true);
  assert.equal(ahead.depth, 4, "as many as it took last time");
});

test("nothing for a worker that takes its time, or goes on with the keys that it has", () => {
  const ahead = inTheMiddle();
  ahead.ask(16, 1, true);
  assert.equal(ahead.depth, 16);
  ahead.ask(0, 1, true);
  assert.equal(ahead.depth, 0);
  ahead.ask(16, 1, true);
  ahead.ask(16, 20, true);
  assert.equal(ahead.depth, 0);
  ahead.ask(16, 1, true);
  assert.equal(ahead.depth, 0, "it begins anew");
});
