import assert from "node:assert/strict";
import { test } from "node:test";
import type { Submission } from "../../engine/port.ts";
import { makeCall, type Operation } from "./call.ts";

const LEVELS = ["high", "normal", "low"];
const MOMENT = { since: { monotonic: 0, wall: 0 }, at: 1 };

function submission(key: string, level = "normal"): Submission {
  return {
    queue: "cars",
    key,
    level,
    payload: { type: "text/plain", body: `for ${key}` },
    delayMs: 0,
    mode: "fifo",
    keyLimit: 10,
    queueLimit: 100,
    keepMs: 0,
  };
}

function asking(told: unknown[], args: readonly string[], submissions?: readonly Submission[]): Operation {
  return {
    what: "a test",
    args,
    entries: submissions?.length ?? 1,
    grows: submissions !== undefined,
    ...(submissions === undefined ? {} : { submissions }),
    answer: (result) => told.push(result),
    fail: () => undefined,
  };
}

test("submissions of several callers travel together, and each caller is told of its own", () => {
  const told: unknown[] = [];
  const call = makeCall(
    [
      asking(told, [], [submission("a")]),
      asking(told, [], [submission("b"), submission("c", "high")]),
      asking(told, [], [submission("d", "high")]),
    ],
    LEVELS,
  );
  assert.equal(call.args.filter((one) => one === "submit").length, 2, "one group per terms");
  call.tell(
    [
      ["1", ["KEY_FULL"]],
      ["3", "4"],
    ],
    MOMENT,
  );
  assert.deepEqual(told, [["1"], [["KEY_FULL"], "3"], ["4"]]);
});

test("what was asked for between two submissions stays between them", () => {
  const told: unknown[] = [];
  const call = makeCall(
    [
      asking(told, [], [submission("a")]),
      asking(told, ["cancel", "x"]),
      asking(told, [], [submission("b")]),
      asking(told, ["claim", "w"]),
    ],
    LEVELS,
  );
  const words = call.args.filter((one) => ["submit", "cancel", "claim", "a", "b"].includes(one));
  assert.deepEqual(words, ["submit", "a", "cancel", "submit", "b", "claim"]);
  call.tell([["1"], "cancelled", ["2"], ["granted"]], MOMENT);
  assert.deepEqual(told, [["1"], "cancelled", ["2"], ["granted"]]);
});
