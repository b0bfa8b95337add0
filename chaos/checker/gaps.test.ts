/** A run that proves nothing must not be called good: nothing happened, or a part of what was written down is gone. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { recorder } from "../history/recorder.ts";
import type { Fact } from "../history/fact.ts";
import { textReport } from "../report/text.ts";
import { isGood, judge } from "./check.ts";
import { readHistory, Unreadable } from "./read-history.ts";
import { deadLetters, done, drained, effect, fault, granted, history, run, settled, submitted } from "./written.ts";

type Facts = readonly (Fact | readonly Fact[])[];

const whole: Facts = [
  submitted("a", 10),
  done("w1", "a", 1, 30),
  fault("kill", ["w1"], 60, 70),
  drained(80),
  deadLetters([], 90),
];

const without = (type: Fact["type"]): readonly Fact[] => history(...whole).filter((fact) => fact.type !== type);

const gaps: Readonly<Record<string, readonly [says: RegExp, facts: readonly Fact[]]>> = {
  "nothing but the rules": [/No item was accepted/, [run, drained(10)]],
  "no item accepted": [/No item was accepted/, history(submitted("a", 10, { outcome: "unknown" }), drained(20))],
  "nothing given out": [/No item was given out/, history(fault("kill", ["w1"], 60, 70), drained(80))],
  "no fault": [/There was no fault/, history(submitted("a", 10), done("w1", "a", 1, 30), drained(50))],
  "a fault without an end": [/when this was over: kill of w1/, without("fault-over")],
  "dead letters that nobody asked for": [/Nobody asked the store for its dead letters/, without("dead-letters")],
  "ids that nobody asked for": [
    /Of 1 items with an id/,
    history(submitted("a", 10, { id: "a" }), done("w1", "a", 1, 30), fault("kill", ["w1"], 60, 70), drained(80)),
  ],
  "a worker without its leases": [/torn: the lease under which w1 worked/, without("grant")],
  "a worker without its effects": [/torn: what w1 asked of the registers/, without("effect-sent")],
  "registers without their answers": [/torn: what the registers answered to w1/, without("judged")],
  "a submitter without what it sent": [/torn: what s1 submitted/, without("submit-sent")],
};

test("a whole history in which something happened is good", () => {
  const judgement = judge(history(...whole));
  assert.deepEqual(judgement.gaps, []);
  assert.ok(isGood(judgement));
  assert.match(textReport(judgement), /^GOOD: every promise that could be judged was kept\. There was too little/);
});

describe("it proves nothing:", () => {
  for (const [name, [says, facts]] of Object.entries(gaps)) {
    test(name, () => {
      const judgement = judge(facts);
      assert.match(judgement.gaps.join(" "), says);
      assert.ok(!isGood(judgement));
      assert.match(textReport(judgement), /^(PROVES NOTHING|BROKEN): /);
      assert.doesNotMatch(textReport(judgement), /^ +kept/m, "Nothing is called kept.");
    });
  }
});

test("a takeover whose lost worker wrote its end is judged, not called a gap", () => {
  const judgement = judge(
    history(
      submitted("a", 10),
      granted("w1", "a", 1, 30),
      fault("kill", ["w1"], 40, 70),
      granted("w2", "a", 2, 2_040, { attempt: 2 }),
      effect("w2", "a", 2, 2_050),
      settled("w2", "a", 2, 2_060),
      drained(2_100),
      deadLetters([], 2_200),
    ),
  );
  assert.deepEqual([judgement.violations, judgement.gaps], [[], []]);
});

describe("histories that cannot be read are refused with the reason:", () => {
  const inFolder = (fill: (folder: string) => void, says: RegExp) => (): void => {
    const folder = mkdtempSync(join(tmpdir(), "baton-histories-"));
    try {
      fill(folder);
      assert.throws(
        () => judge(readHistory(folder)),
        (error) => error instanceof Unreadable && says.test(error.message),
      );
    } finally {
      rmSync(folder, { recursive: true });
    }
  };
  const written = (folder: string, lines: number): string => {
    const record = recorder(folder, "run");
    for (let line = 0; line < lines; line += 1) record({ type: "drained", left: line });
    return join(folder, "run.history");
  };

  test(
    "an empty folder",
    inFolder(() => undefined, /no history of a chaos run/),
  );
  test("a folder that is not there", () => {
    assert.throws(() => readHistory(join(tmpdir(), "baton-nowhere")), Unreadable);
  });
  test(
    "an empty file",
    inFolder((folder) => writeFileSync(join(folder, "run.history"), ""), /by which rules/),
  );
  test(
    "a line that is no fact",
    inFolder((folder) => writeFileSync(join(folder, "w1.history"), "nonsense\n"), /w1\.history, line 1/),
  );
  test(
    "a line that is missing",
    inFolder((folder) => {
      const file = written(folder, 3);
      writeFileSync(file, readFileSync(file, "utf8").split("\n").toSpliced(1, 1).join("\n"));
    }, /run\.history is torn: line 2 was written as line 3/),
  );
  test("but half a line at the end is what a killed process leaves", () => {
    const folder = mkdtempSync(join(tmpdir(), "baton-histories-"));
    const file = written(folder, 2);
    writeFileSync(file, readFileSync(file, "utf8").slice(0, -5));
    assert.equal(readHistory(folder).length, 1);
    rmSync(folder, { recursive: true });
  });
});
