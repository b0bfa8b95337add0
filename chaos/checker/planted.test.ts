/**
 * Flaws that nobody told the checker of when it was written: each was thought up afterwards, as somebody would who wants to get
 * something past it. What it missed at first it was taught then.
 */
import { addVerdictTests, type Facts } from "./add-verdict-tests.ts";
import type { Rule } from "./violation.ts";
import {
  cancelled,
  deadLetters,
  done,
  drained,
  effect,
  exited,
  fault,
  final,
  granted,
  renewed,
  settled,
  submitted,
} from "./written.ts";

const good: Readonly<Record<string, Facts>> = {
  "an urgent item while a failed one waits": [
    submitted("a", 10),
    granted("w1", "a", 1, 30),
    settled("w1", "a", 1, 40, { ending: "retry", delayMs: 200 }),
    submitted("high", 50, { level: "high" }),
    done("w1", "high", 2, 60, { level: "high" }),
    done("w2", "a", 3, 260),
    drained(400),
  ],
  "a worker that went on before it was written that it was done, and stood still then": [
    submitted("a", 10),
    submitted("b", 12),
    granted("w1", "a", 1, 30),
    { type: "settle-sent", at: 40, by: "w1", item: "a", key: "k", fence: 1, ending: "done" },
    granted("w1", "b", 2, 41),
    fault("stop", ["w1"], 42, 3_050),
    done("w2", "a", 3, 2_100),
    done("w2", "b", 4, 2_120),
    { type: "settle", at: 3_100, by: "w1", item: "a", key: "k", fence: 1, ending: "done", outcome: "fail" },
    drained(3_200),
  ],
  "keys whose items were taken back while they ran, and whose next ones came long after their workers were lost": [
    ...Array.from({ length: 6 }, (_, number) => {
      const [key, at, item] = [`k${number}`, number * 20_000, `a${number}`];
      return [
        submitted(item, at + 10, { key, id: item }),
        granted(`w${number}`, item, number * 2 + 1, at + 20, { key, id: item }),
        cancelled(item, at + 25, "requested"),
        fault("kill", [`w${number}`], at + 30, at + 200),
        submitted(`b${number}`, at + 9_000, { key }),
        done("w9", `b${number}`, number * 2 + 2, at + 9_002, { key }),
        final(item, "cancelled", 130_000 + number),
      ].flat();
    }),
    drained(120_000),
  ],
  "an item without an id that failed for good": [
    submitted("a", 10),
    granted("w1", "a", 1, 30),
    settled("w1", "a", 1, 40, { ending: "dead" }),
    drained(50),
    deadLetters(["a"], 60),
  ],
  "an end whose answer was lost, and which the store then says is over": [
    submitted("a", 10),
    granted("w1", "a", 1, 30),
    effect("w1", "a", 1, 40),
    fault("cut", ["w1"], 45, 300),
    settled("w1", "a", 1, 50, { outcome: "unknown" }),
    settled("w1", "a", 1, 320, { outcome: "fail" }),
    drained(400),
  ],
  "an item that was refused at first, and accepted when it was tried again": [
    submitted("a", 10, { id: "a", outcome: "fail" }),
    submitted("a", 20, { id: "a" }),
    done("w1", "a", 1, 30),
    drained(50),
    final("a", "done", 60),
  ],
  "an item that was refused at first, and whose second try nobody answered": [
    submitted("a", 10, { id: "a", outcome: "fail" }),
    submitted("a", 20, { id: "a", outcome: "unknown" }),
    done("w1", "a", 1, 30),
    drained(50),
  ],
  "an item that is taken back while it waits": [
    submitted("a", 10, { id: "a" }),
    cancelled("a", 20, "cancelled"),
    drained(50),
    final("a", "cancelled", 60),
  ],
  "an item that is taken back while it runs, and another that is done before its worker hears of it": [
    submitted("a", 10, { id: "a" }),
    granted("w1", "a", 1, 30),
    cancelled("a", 35, "requested"),
    settled("w1", "a", 1, 40, { ending: "cancelled" }),
    submitted("b", 45, { id: "b" }),
    granted("w1", "b", 2, 50),
    cancelled("b", 52, "requested"),
    effect("w1", "b", 2, 55),
    settled("w1", "b", 2, 58),
    cancelled("b", 62, "ended"),
    drained(70),
    final("a", "cancelled", 80),
    final("b", "done", 81),
  ],
  "an item whose worker had begun when it was taken back, and had not heard of its lease": [
    submitted("a", 10, { id: "a" }),
    cancelled("a", 28, "requested"),
    granted("w1", "a", 1, 30, { since: 20 }),
    settled("w1", "a", 1, 40, { ending: "cancelled" }),
    drained(50),
    final("a", "cancelled", 60),
  ],
  "an id that comes again for another key": [
    submitted("a", 10, { id: "a" }),
    { type: "submit-sent", at: 20, by: "s1", call: 20, item: "a2", id: "a", key: "other", level: "low" },
    {
      type: "submit",
      at: 21,
      by: "s1",
      call: 20,
      item: "a2",
      outcome: "ok",
      receipt: { id: "a", key: "k", level: "normal", duplicate: true },
    },
    done("w1", "a", 1, 30),
    drained(50),
    final("a", "done", 60),
  ],
};

const stopped: Facts = [submitted("a", 10), granted("w1", "a", 1, 30), fault("stop", ["w1"], 100, 5_000)];

const planted: Readonly<Record<string, readonly [rule: Rule, facts: Facts]>> = {
  "the second renewal is granted although another has the key by then": [
    "stale",
    [
      submitted("a", 10),
      submitted("b", 12),
      granted("w1", "a", 1, 30),
      renewed("w1", 1, 700),
      fault("stop", ["w1"], 800, 5_000),
      granted("w2", "a", 2, 2_710, { attempt: 2 }),
      renewed("w1", 1, 5_001),
      effect("w2", "a", 2, 2_720),
      settled("w2", "a", 2, 2_730),
      done("w2", "b", 3, 5_100),
      drained(6_000),
    ],
  ],
  "such a renewal, dated back to the begin of the lease": [
    "stale",
    [...stopped, done("w2", "a", 2, 2_100), renewed("w1", 1, 5_001, 29), drained(6_000)],
  ],
  "a renewal after the lease ran out, dated back to its begin": [
    "stale",
    [submitted("a", 10), granted("w1", "a", 1, 30), renewed("w1", 1, 2_500, 29), drained(9_000)],
  ],
  "an item that was refused, and runs": [
    "accounted",
    [submitted("a", 10, { outcome: "fail" }), done("w1", "a", 1, 30), drained(50)],
  ],
  "an item that runs although it was taken back": [
    "completed",
    [
      submitted("a", 10, { id: "a" }),
      cancelled("a", 20, "cancelled"),
      done("w1", "a", 1, 30),
      drained(50),
      final("a", "cancelled", 60),
    ],
  ],
  "an item that was taken back, and is done": [
    "accounted",
    [
      submitted("a", 10, { id: "a" }),
      cancelled("a", 20, "cancelled"),
      done("w1", "a", 1, 30),
      drained(50),
      final("a", "done", 60),
    ],
  ],
  "an item that nobody took back, and that is said to be": [
    "accounted",
    [submitted("a", 10, { id: "a" }), drained(50), final("a", "cancelled", 60)],
  ],
  "an item that runs after it was said to have ended": [
    "completed",
    [
      submitted("a", 10, { id: "a" }),
      granted("w1", "a", 1, 30),
      cancelled("a", 35, "ended"),
      fault("kill", ["w1"], 40, 50),
      done("w2", "a", 2, 2_100),
      drained(2_200),
      final("a", "done", 2_300),
    ],
  ],
  "an item that was accepted, and is not known": [
    "accounted",
    [
      submitted("a", 10, { id: "a" }),
      cancelled("a", 20, "missing"),
      done("w1", "a", 1, 30),
      drained(50),
      final("a", "done", 60),
    ],
  ],
  "a hand-over that keeps the fence": [
    "fences",
    [
      submitted("a", 10),
      granted("w1", "a", 1, 30),
      fault("kill", ["w1"], 100, 300),
      done("w2", "a", 1, 2_100),
      drained(2_200),
    ],
  ],
  "a takeover in the half second between the worker's deadline and the store's": [
    "exclusive",
    [...stopped, done("w2", "a", 2, 1_700), drained(6_000)],
  ],
  "two workers on one item while one of them was stopped": [
    "exclusive",
    [...stopped, done("w2", "a", 2, 300), drained(6_000)],
  ],
  "after a crash the less urgent one goes first": [
    "ordered",
    [
      submitted("high", 10, { level: "high" }),
      submitted("low", 12, { level: "low" }),
      granted("w1", "high", 1, 30, { level: "high" }),
      fault("kill", ["w1"], 100, 300),
      done("w2", "low", 2, 2_100, { level: "low" }),
      done("w2", "high", 3, 2_120, { level: "high" }),
      drained(2_200),
    ],
  ],
  "after a crash the one behind goes first": [
    "ordered",
    [
      submitted("a", 10),
      submitted("b", 12),
      granted("w1", "a", 1, 30),
      fault("kill", ["w1"], 100, 300),
      done("w2", "b", 2, 2_100),
      done("w2", "a", 3, 2_120),
      drained(2_200),
    ],
  ],
  "a worker that goes on although it was told that it was too late": [
    "ordered",
    [
      submitted("a", 10),
      submitted("b", 12),
      granted("w1", "a", 1, 30),
      fault("cut", ["w1"], 35, 50),
      settled("w1", "a", 1, 40, { outcome: "fail" }),
      done("w1", "b", 2, 60),
      done("w2", "a", 3, 2_100),
      drained(2_200),
    ],
  ],
  "a retry that lets the one behind it pass": [
    "ordered",
    [
      submitted("a", 10),
      submitted("b", 12),
      granted("w1", "a", 1, 30),
      settled("w1", "a", 1, 40, { ending: "retry" }),
      done("w1", "b", 2, 60),
      done("w1", "a", 3, 300),
      drained(400),
    ],
  ],
  "a retry that does not wait": [
    "ordered",
    [
      submitted("a", 10),
      granted("w1", "a", 1, 30),
      settled("w1", "a", 1, 40, { ending: "retry", delayMs: 200 }),
      done("w1", "a", 2, 60),
      drained(400),
    ],
  ],
  "a bulk call stored in reverse": [
    "ordered",
    [
      ["a", "b", "c"].flatMap((item) => submitted(item, 10, { call: 1 })),
      done("w1", "c", 1, 30),
      done("w1", "b", 2, 50),
      done("w1", "a", 3, 70),
      drained(90),
    ],
  ],
  "a dead letter that is dropped, of an item with an id": [
    "accounted",
    [
      submitted("a", 10, { id: "a" }),
      granted("w1", "a", 1, 30),
      settled("w1", "a", 1, 40, { ending: "dead" }),
      drained(50),
      final("a", "missing", 60),
    ],
  ],
  "a dead letter that is dropped, of an item without one": [
    "accounted",
    [
      submitted("a", 10),
      granted("w1", "a", 1, 30),
      settled("w1", "a", 1, 40, { ending: "dead" }),
      drained(50),
      deadLetters([], 60),
    ],
  ],
  "a dead letter that nobody gave up": [
    "accounted",
    [submitted("a", 10), done("w1", "a", 1, 30), drained(50), deadLetters(["a"], 60)],
  ],
  "an item that is done, and of which the store says that it waits": [
    "accounted",
    [submitted("a", 10, { id: "a" }), done("w1", "a", 1, 30), drained(50), final("a", "waiting", 60)],
  ],
  "an item that is done, and of which the store knows nothing": [
    "accounted",
    [submitted("a", 10, { id: "a" }), done("w1", "a", 1, 30), drained(50), final("a", "missing", 60)],
  ],
  "an item whose worker died before it could say that it is done, and that is gone": [
    "accounted",
    [
      submitted("a", 10),
      granted("w1", "a", 1, 30),
      effect("w1", "a", 1, 40),
      fault("kill", ["w1"], 45, 300),
      drained(5_000),
    ],
  ],
  "an item whose end was refused, and that is gone": [
    "accounted",
    [
      submitted("a", 10),
      granted("w1", "a", 1, 30),
      effect("w1", "a", 1, 40),
      settled("w1", "a", 1, 50, { outcome: "fail" }),
      drained(5_000),
    ],
  ],
  "an accepted item that goes when the store is restarted": [
    "accounted",
    [submitted("a", 10), fault("store", [], 20, 300), drained(5_000)],
  ],
  "an item given out under another key": [
    "ids",
    [submitted("a", 10, { key: "k1" }), done("w1", "a", 1, 30, { key: "k2" }), drained(50)],
  ],
  "an item given out at another level": [
    "ids",
    [submitted("a", 10, { level: "high" }), done("w1", "a", 1, 30, { level: "low" }), drained(50)],
  ],
  "an item given out with the id of another": [
    "ids",
    [submitted("a", 10), done("w1", "a", 1, 30, { id: "@b" }), drained(50)],
  ],
  "two receipts with one id": [
    "ids",
    [
      submitted("a", 10),
      { type: "submit-sent", at: 20, by: "s1", call: 20, item: "b", key: "k", level: "normal" },
      {
        type: "submit",
        at: 21,
        by: "s1",
        call: 20,
        item: "b",
        outcome: "ok",
        receipt: { id: "@a", key: "k", level: "normal", duplicate: false },
      },
      done("w1", "a", 1, 30),
      done("w1", "b", 2, 50, { id: "@a" }),
      drained(70),
    ],
  ],
  "a receipt that tells of another key": [
    "ids",
    [
      { type: "submit-sent", at: 10, by: "s1", call: 1, item: "a", id: "a", key: "k", level: "normal" },
      {
        type: "submit",
        at: 11,
        by: "s1",
        call: 1,
        item: "a",
        outcome: "ok",
        receipt: { id: "a", key: "other", level: "normal", duplicate: false },
      },
      done("w1", "a", 1, 30),
      drained(50),
    ],
  ],
  "an effect of another worker under the same fence": [
    "effects",
    [
      submitted("a", 10),
      granted("w1", "a", 1, 30),
      effect("w2", "a", 1, 35),
      effect("w1", "a", 1, 36),
      settled("w1", "a", 1, 40),
      drained(50),
    ],
  ],
  "an effect for an item that is not the lease's": [
    "effects",
    [submitted("a", 10), submitted("b", 12), granted("w1", "a", 1, 30), effect("w1", "b", 1, 35), drained(50)],
  ],
  "a lease that counts from the future": [
    "exclusive",
    [
      submitted("a", 10),
      granted("w1", "a", 1, 30, { since: 10_000 }),
      effect("w1", "a", 1, 40),
      settled("w1", "a", 1, 50),
      drained(60),
    ],
  ],
  "an attempt that is forgotten": [
    "repeats",
    [
      submitted("a", 10),
      granted("w1", "a", 1, 30, { attempt: 2 }),
      settled("w1", "a", 1, 40, { ending: "retry" }),
      done("w1", "a", 2, 60, { attempt: 1 }),
      drained(80),
    ],
  ],
  "an item that runs twice although nothing happened": [
    "repeats",
    [submitted("a", 10), granted("w1", "a", 1, 30), done("w2", "a", 2, 2_100), drained(2_200)],
  ],
  "a key that is not given out any more": [
    "drained",
    [submitted("a", 10), granted("w1", "a", 1, 30), fault("kill", ["w1"], 100, 300), drained(65_000, 1)],
  ],
  "items that are only seen by a poll": [
    "prompt",
    [
      Array.from({ length: 200 }, (_, index) => [
        ...submitted(`i${index}`, 10 + index, { key: `k${index}` }),
        ...done("w1", `i${index}`, 1, (index % 10 === 0 ? 4_000 : 15) + index, { key: `k${index}` }),
      ]).flat(),
      drained(5_000),
    ],
  ],
  "a few takeovers that are all slow": [
    "takeover",
    [
      ["k1", "k2", "k3", "k4", "k5"].flatMap((key) =>
        [
          submitted(key, 10, { key }),
          [granted("w1", key, 1, 50, { key })],
          done("w2", key, 2, 7_000, { key, attempt: 2 }),
        ].flat(),
      ),
      fault("kill", ["w1"], 100, 300),
      drained(8_000),
    ],
  ],
  "a process that ends by itself": [
    "alive",
    [submitted("a", 10), done("w1", "a", 1, 30), exited("w1", "ended with code 1", 45), drained(50)],
  ],
};

addVerdictTests(good, planted);
