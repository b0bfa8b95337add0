import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { InvalidInput } from "./errors.ts";
import { checkLevels, DEFAULT_LEVELS, defaultLevel, LevelChooser } from "./level.ts";

describe("levels", () => {
  test("are given back as a list of their own", () => {
    const levels = ["urgent", "later"];
    const checked = checkLevels(levels);
    assert.deepEqual(checked, levels);
    assert.notEqual(checked, levels);
  });

  test("must be 1 to 16 names that differ", () => {
    const many = Array.from({ length: 17 }, (_, index) => `l${index}`);
    assert.equal(checkLevels(many.slice(0, 16)).length, 16);
    for (const bad of [[], many, ["a", "a"], ["A"], "high", undefined]) {
      assert.throws(() => checkLevels(bad as string[]), InvalidInput);
    }
  });

  test("name the place of a bad one", () =>
    assert.throws(() => checkLevels(["a", "B"]), /^InvalidInput: levels\[1\]: /));

  test("have a default in the middle, or the more urgent of two", () => {
    assert.equal(defaultLevel(DEFAULT_LEVELS), "normal");
    assert.deepEqual([["a"], ["a", "b"], ["a", "b", "c", "d"]].map(defaultLevel), ["a", "a", "b"]);
    assert.throws(() => defaultLevel([]), InvalidInput);
  });
});

describe("the chooser of levels", () => {
  const PATIENCE = 1_000;

  test("takes the most urgent level that has anything", () => {
    const chooser = new LevelChooser();
    assert.equal(chooser.choose([undefined, undefined, undefined], PATIENCE), undefined);
    assert.equal(chooser.choose([], PATIENCE), undefined);
    assert.equal(chooser.choose([0, 0, 0], PATIENCE), 0);
    assert.equal(chooser.choose([undefined, 5, 0], PATIENCE), 1);
    assert.equal(chooser.choose([undefined, undefined, 0], PATIENCE), 2);
  });

  test("is strict as long as nobody has waited longer than patience allows", () => {
    const chooser = new LevelChooser();
    for (let choice = 0; choice < 20; choice += 1) assert.equal(chooser.choose([0, PATIENCE, PATIENCE], PATIENCE), 0);
  });

  test("gives a level that has waited too long one choice in four, and no more", () => {
    const chooser = new LevelChooser();
    const choices = Array.from({ length: 400 }, () => chooser.choose([0, undefined, PATIENCE + 1], PATIENCE));
    assert.equal(choices.filter((level) => level === 2).length, 100);
    // Never four urgent ones in a row, once it waits: that is the bound.
    assert.ok(!choices.slice(1).join("").includes("0000"));
  });

  test("serves the one that has waited longest first", () => {
    const chooser = new LevelChooser();
    const choices = Array.from({ length: 8 }, () => chooser.choose([0, PATIENCE + 1, PATIENCE + 2], PATIENCE));
    assert.deepEqual(new Set(choices), new Set([0, 2]));
  });

  test("does not count it as out of turn when the impatient level is the most urgent one", () => {
    const chooser = new LevelChooser();
    for (let choice = 0; choice < 10; choice += 1) {
      assert.equal(chooser.choose([undefined, PATIENCE * 2, 0], PATIENCE), 1);
    }
  });

  test("with no patience at all serves the least urgent level too", () => {
    const chooser = new LevelChooser();
    const choices = Array.from({ length: 8 }, () => chooser.choose([1, 1, 2], 0));
    assert.equal(choices.filter((level) => level === 2).length, 2);
  });
});
