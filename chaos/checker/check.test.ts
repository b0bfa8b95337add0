/** The checker must be able to say yes and no: hand-written histories, good ones, and bad ones with one promise broken each. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { addVerdictTests, type Facts } from "./add-verdict-tests.ts";
import { judge } from "./check.ts";
import { figuresOf } from "./figures.ts";
import type { Rule } from "./violation.ts";
import {
  cancelled,
  done,
  drained,
  effect,
  fault,
  final,
  granted,
  history,
  renewed,
  settled,
  submitted,
  unanswered,
} from "./written.ts";

const twoItems: Facts = [submitted("a", 10), submitted("b", 20), done("w1", "a", 1, 30), done("w2", "b", 2, 50)];

/** Killed while it works; its lease ends at 1529 by its own clock, and another takes over after two seconds. */
const takenOver: Facts = [
  submitted("a", 10),
  granted("w1", "a", 1, 30),
  effect("w1", "a", 1, 35, { step: "began" }),
  fault("kill", ["w1"], 100, 300),
  granted("w2", "a", 2, 2_040, { attempt: 2 }),
  effect("w2", "a", 2, 2_050),
  settled("w2", "a", 2, 2_060),
  drained(2_100),
];

/** Stopped beyond its lease: it wakes up, and is refused by the register and by the store. */
const cameBack: Facts = [
  submitted("a", 10),
  granted("w1", "a", 1, 30),
  fault("stop", ["w1"], 100, 5_000),
  granted("w2", "a", 2, 2_100, { attempt: 2 }),
  effect("w2", "a", 2, 2_110),
  effect("w1", "a", 1, 5_010, { accepted: false, highest: 2 }),
  settled("w2", "a", 2, 2_120),
  settled("w1", "a", 1, 5_020, { outcome: "fail" }),
  drained(6_000),
];

const good: Readonly<Record<string, Facts>> = {
  "two items, one after the other": [...twoItems, drained(70)],
  "a takeover after a kill": takenOver,
  "a stopped worker that comes back and is refused everywhere": cameBack,
  "a lease that lives by its renewals": [
    submitted("a", 10),
    granted("w1", "a", 1, 30),
    renewed("w1", 1, 700),
    renewed("w1", 1, 1_400),
    effect("w1", "a", 1, 2_500),
    settled("w1", "a", 1, 2_510),
    drained(2_600),
  ],
  "a renewal without an answer that did happen": [
    submitted("a", 10),
    granted("w1", "a", 1, 30),
    fault("cut", ["w1"], 1_390, 1_500),
    unanswered("w1", 1, 1_400),
    renewed("w1", 1, 2_500),
    granted("w2", "a", 2, 4_600, { attempt: 2 }),
    effect("w2", "a", 2, 4_610),
    settled("w2", "a", 2, 4_620),
    drained(9_000),
  ],
  "a failed attempt that is tried again": [
    submitted("a", 10),
    granted("w1", "a", 1, 30),
    settled("w1", "a", 1, 40, { ending: "retry" }),
    done("w2", "a", 2, 300),
    drained(400),
  ],
  "a dead letter": [
    submitted("a", 10, { id: "a" }),
    granted("w1", "a", 1, 30),
    settled("w1", "a", 1, 40, { ending: "dead" }),
    drained(50),
    final("a", "dead", 60),
  ],
  "a submission without an answer that never ran": [submitted("a", 10, { outcome: "unknown" }), drained(50)],
  "a submission without an answer that did run": [
    submitted("a", 10, { outcome: "unknown" }),
    done("w1", "a", 1, 30),
    drained(50),
  ],
  "an id that comes again and gets the first receipt": [
    submitted("a", 10, { id: "a" }),
    submitted("a2", 20, { id: "a", duplicate: true }),
    done("w1", "a", 1, 30),
    drained(50),
    final("a", "done", 60),
  ],
  "a run of three items, of which one is given back": [
    submitted("a", 10, { id: "a" }),
    submitted("b", 12, { id: "b" }),
    submitted("c", 14, { id: "c" }),
    granted("w1", "a", 1, 30, { behind: ["b", "c"] }),
    effect("w1", "a", 1, 32),
    effect("w1", "b", 1, 36),
    settled("w1", "b", 1, 40, { done: ["a"] }),
    done("w1", "c", 2, 50),
    drained(70),
    final("a", "done", 80),
    final("b", "done", 81),
    final("c", "done", 82),
  ],
  "a run whose second item takes long: a renewal tells of the first": [
    submitted("a", 10, { id: "a" }),
    submitted("b", 12, { id: "b" }),
    granted("w1", "a", 1, 30, { behind: ["b"] }),
    effect("w1", "a", 1, 32),
    effect("w1", "b", 1, 36, { step: "began" }),
    {
      type: "renew",
      at: 82,
      by: "w1",
      sentAt: 80,
      key: "k",
      fence: 1,
      outcome: "ok",
      since: 81,
      ended: [{ item: "a", ending: "done" }],
    },
    effect("w1", "b", 1, 500),
    settled("w1", "b", 1, 510),
    drained(600),
    final("a", "done", 610),
    final("b", "done", 611),
  ],
  "the next item before it is written that the one before is done, and both again after a crash": [
    submitted("a", 10),
    submitted("b", 12),
    granted("w1", "a", 16, 30, { behind: ["b"] }),
    effect("w1", "a", 16, 32),
    effect("w1", "b", 16, 38),
    fault("kill", ["w1"], 41, 200),
    done("w2", "a", 32, 2_100),
    done("w2", "b", 33, 2_120),
    drained(2_200),
  ],
  "a lease that was over when its worker heard of it": [
    submitted("a", 10),
    fault("stop", ["w1"], 20, 5_000),
    done("w2", "a", 2, 2_100),
    granted("w1", "a", 1, 5_001, { since: 15 }),
    drained(6_000),
  ],
};

const bad: Readonly<Record<string, readonly [rule: Rule, facts: Facts]>> = {
  "a key given to two": [
    "exclusive",
    [...twoItems.slice(0, 2), granted("w1", "a", 1, 30), granted("w2", "b", 2, 40), drained(50)],
  ],
  "a takeover before the killed worker's lease was over": [
    "exclusive",
    [
      submitted("a", 10),
      granted("w1", "a", 1, 30),
      fault("kill", ["w1"], 100, 300),
      done("w2", "a", 2, 600),
      drained(700),
    ],
  ],
  "a fence that falls": [
    "fences",
    [...twoItems.slice(0, 2), done("w1", "a", 5, 30), done("w2", "b", 4, 50), drained(70)],
  ],
  "a fence given twice": [
    "fences",
    [...twoItems.slice(0, 2), done("w1", "a", 5, 30), done("w2", "b", 5, 50), drained(70)],
  ],
  "a renewal of what another has": ["stale", [...cameBack, renewed("w1", 1, 5_005)]],
  "a renewal after the lease ran out": [
    "stale",
    [submitted("a", 10), granted("w1", "a", 1, 30), renewed("w1", 1, 2_500), drained(9_000)],
  ],
  "an end of what another has": ["stale", [...cameBack.slice(0, -2), settled("w1", "a", 1, 5_020), drained(6_000)]],
  "an effect after the deadline without a pause": [
    "effects",
    [submitted("a", 10), granted("w1", "a", 1, 30), effect("w1", "a", 1, 1_800), drained(2_000)],
  ],
  "an effect long after the pause": ["effects", [...cameBack, effect("w1", "a", 1, 5_600, { accepted: false })]],
  "a register that lets a stale worker in": ["effects", [...cameBack, effect("w1", "a", 1, 5_015)]],
  "a holder that the register refuses": [
    "effects",
    [
      submitted("a", 10),
      granted("w1", "a", 1, 30),
      effect("w1", "a", 1, 40, { accepted: false, highest: 9 }),
      drained(60),
    ],
  ],
  "an item that vanished": ["accounted", [submitted("a", 10), drained(50)]],
  "an item that the store does not know": [
    "accounted",
    [submitted("a", 10, { id: "a" }), drained(50), final("a", "missing", 60)],
  ],
  "an item that is done and nobody did it": [
    "accounted",
    [submitted("a", 10, { id: "a" }), drained(50), final("a", "done", 60)],
  ],
  "an item that nobody submitted": ["accounted", [done("w1", "ghost", 1, 30), drained(50)]],
  "an item that runs after it is done": [
    "completed",
    [
      submitted("a", 10),
      done("w1", "a", 1, 30),
      fault("kill", ["w1"], 50, 60),
      done("w2", "a", 2, 2_100),
      drained(2_200),
    ],
  ],
  "an id that makes two items": [
    "ids",
    [
      submitted("a", 10, { id: "a" }),
      submitted("a2", 20, { id: "a" }),
      done("w1", "a", 1, 30),
      done("w1", "a2", 2, 50),
      drained(70),
    ],
  ],
  "an id whose second receipt tells of another item": [
    "ids",
    [
      submitted("a", 10, { id: "a" }),
      submitted("a2", 20, { id: "a", key: "other", duplicate: true }),
      done("w1", "a", 1, 30),
      drained(50),
    ],
  ],
  "the later one first": [
    "ordered",
    [...twoItems.slice(0, 2), done("w1", "b", 1, 30), done("w1", "a", 2, 50), drained(70)],
  ],
  "the later one of a call first": [
    "ordered",
    [
      submitted("a", 10, { call: 1 }),
      submitted("b", 10, { call: 1 }),
      done("w1", "b", 1, 30),
      done("w1", "a", 2, 50),
      drained(70),
    ],
  ],
  "the less urgent one first": [
    "ordered",
    [
      submitted("low", 10, { level: "low" }),
      submitted("high", 20, { level: "high" }),
      done("w1", "low", 1, 500),
      done("w1", "high", 2, 520),
      drained(600),
    ],
  ],
  "an item that runs twice for no reason": [
    "repeats",
    [submitted("a", 10), granted("w1", "a", 1, 30), done("w2", "a", 2, 2_100), drained(2_200)],
  ],
  "an item of a run that was taken back, and begun after that": [
    "completed",
    [
      submitted("a", 10, { id: "a" }),
      submitted("b", 12, { id: "b" }),
      granted("w1", "a", 1, 30, { behind: ["b"] }),
      effect("w1", "a", 1, 32),
      cancelled("b", 34, "cancelled"),
      effect("w1", "b", 1, 38),
      settled("w1", "b", 1, 40, { done: ["a"] }),
      drained(50),
    ],
  ],
  "a run in another order": [
    "ordered",
    [
      submitted("a", 10),
      submitted("b", 12),
      granted("w1", "b", 1, 500, { behind: ["a"] }),
      effect("w1", "b", 1, 502),
      effect("w1", "a", 1, 506),
      settled("w1", "a", 1, 510, { done: ["b"] }),
      drained(600),
    ],
  ],
  "an item that its lease does not cover": [
    "effects",
    [
      submitted("a", 10),
      submitted("b", 12),
      granted("w1", "a", 1, 30),
      effect("w1", "a", 1, 32),
      effect("w1", "b", 1, 36),
      settled("w1", "a", 1, 40),
      done("w1", "b", 2, 50),
      drained(70),
    ],
  ],
  "an item of a run that is done, and runs again": [
    "completed",
    [
      submitted("a", 10),
      submitted("b", 12),
      granted("w1", "a", 1, 30, { behind: ["b"] }),
      effect("w1", "a", 1, 32),
      effect("w1", "b", 1, 36),
      settled("w1", "b", 1, 40, { done: ["a"] }),
      done("w2", "a", 2, 50, { attempt: 2 }),
      drained(70),
    ],
  ],
  "more items again than a lease covered": [
    "repeats",
    [
      Array.from({ length: 70 }, (_, index) => submitted(`i${index}`, 10 + index)),
      Array.from({ length: 70 }, (_, index) => [
        granted("w1", `i${index}`, 16 + index, 30 + index),
        ...effect("w1", `i${index}`, 16 + index, 30.3 + index),
        ...settled("w1", `i${index}`, 16 + index, 30.6 + index, { outcome: "unknown" }),
      ]).flat(),
      fault("kill", ["w1"], 120, 200),
      Array.from({ length: 70 }, (_, index) => done("w2", `i${index}`, 100 + index, 2_300 + index * 12)).flat(),
      drained(4_000),
    ].flat(),
  ],
  "a queue that does not drain": ["drained", [...twoItems, drained(70_000)]],
  "a queue in which something is left": ["drained", [...twoItems, drained(100, 1)]],
  "takeovers that take too long": ["takeover", slowTakeovers(20)],
};

/** Each on a key of its own. */
function slowTakeovers(count: number): Facts {
  return [
    Array.from({ length: count }, (_, index) => {
      const key = `k${index}`;
      const item = `i${index}`;
      return [
        ...submitted(item, 10 + index, { key }),
        granted("w1", item, 1, 50, { key }),
        granted("w2", item, 2, 3_200, { key, attempt: 2 }),
        ...settled("w2", item, 2, 3_210, { key, ending: "dead" }),
      ];
    }).flat(),
    fault("kill", ["w1"], 100, 200),
    drained(3_300),
  ].flat();
}

addVerdictTests(good, bad);

test("the figures tell repeats, takeovers and refused effects", () => {
  const taken = figuresOf(judge(history(...takenOver)).evidence);
  assert.deepEqual([taken.accepted, taken.repeats, taken.repeatsExplained, taken.takeovers], [1, 1, 1, 1]);
  assert.equal(taken.takeoverP99Ms, 1_940);
  assert.equal(figuresOf(judge(history(...cameBack)).evidence).refused, 1);
});

test("a history of a hundred thousand facts is judged in seconds", () => {
  const facts = Array.from({ length: 12_000 }, (_, index) => [
    ...submitted(`i${index}`, 10 + index * 12),
    ...done("w1", `i${index}`, index + 1, 12 + index * 12),
  ]).flat();
  const begun = process.cpuUsage();
  const { violations } = judge(history(facts, drained(200_000)));
  assert.deepEqual(violations, []);
  // Anything quadratic in one key takes minutes. Of the processor's time: what others take is not the checker's.
  const seconds = process.cpuUsage(begun).user / 1e6;
  assert.ok(seconds < 10, `judging took ${seconds.toFixed(1)} s of the processor's time`);
});
