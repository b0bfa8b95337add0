import assert from "node:assert/strict";
import { test } from "node:test";
import type { Grant } from "../engine/port.ts";
import { grant } from "../../test/random/client/parts/granted-run.ts";
import { Pace } from "./pace.ts";

const BOUNDS = { slots: 4, runMs: 50, keepMs: 20 };
const SINCE = { monotonic: 0, wall: 0 };

/** So many keys, with so many items each. */
function keys(count: number, items = 1): readonly Grant[] {
  const one = grant("k", SINCE);
  const behind = Array.from({ length: items - 1 }, () => one.item);
  return Array.from({ length: count }, () => (items === 1 ? one : { ...one, behind }));
}

/** All that were asked for. */
function answerInFull(pace: Pace): void {
  pace.answered({ max: 4, items: 1 }, keys(4));
}

/** After so many items that took so long each. */
function paceOf(ms: number, items = 1): Pace {
  const pace = new Pace(BOUNDS);
  for (let item = 0; item < items; item += 1) pace.note(ms);
  return pace;
}

test("who has worked on nothing yet asks for one item, and for no key ahead", () => {
  const pace = new Pace(BOUNDS);
  answerInFull(pace);
  assert.deepEqual([pace.items, pace.ahead], [1, 0]);
});

test("a run takes half of its time, and is never too long for one settlement", () => {
  assert.equal(paceOf(4).items, 6);
  assert.equal(paceOf(4.9).items, 5);
  assert.equal(paceOf(5).items, 1, "a handler that takes 5 ms is not quick");
  assert.equal(paceOf(0.1).items, 64);
  assert.equal(paceOf(0).items, 64, "a clock may be too coarse for it");
});

test("a handler that is not quick gets no key ahead", () => {
  const pace = paceOf(5);
  answerInFull(pace);
  assert.equal(pace.ahead, 0);
});

test("each answer with many keys doubles those ahead, and one with few halves them", () => {
  const pace = paceOf(0.1);
  assert.equal(pace.ahead, 0, "nothing has shown that more is ready");
  const aheads = [20, 20, 2, 1, 1, 20].map((count) => {
    pace.answered({ max: 20, items: 1 }, keys(count));
    return pace.ahead;
  });
  assert.deepEqual(aheads, [4, 8, 16, 8, 4, 8]);
});

test("keys that were kept for too long end it, twice", () => {
  const pace = paceOf(0.1);
  for (const _ of ["once", "again"]) {
    answerInFull(pace);
    assert.equal(pace.ahead, 4);
    pace.keptTooLong();
    answerInFull(pace);
    assert.equal(pace.ahead, 0, "no item has ended since");
    pace.note(0.1);
    assert.equal(pace.ahead, 4);
    pace.answered({ max: 100, items: 1 }, keys(1));
    pace.answered({ max: 100, items: 1 }, keys(1));
    pace.answered({ max: 100, items: 1 }, keys(1));
  }
});

test("where no key has more than one item, runs are asked for now and then, and where one has, always", () => {
  const pace = paceOf(0.1);
  const asked: number[] = [];
  const ask = (items: number): void => {
    asked.push(pace.items);
    pace.answered({ max: 4, items: pace.items }, keys(4, pace.items === 1 ? 1 : items));
  };
  for (let claim = 0; claim < 33; claim += 1) ask(1);
  assert.deepEqual(
    asked.flatMap((items, at) => (items === 1 ? [] : [at])),
    [0, 16, 32],
  );
  for (let claim = 0; claim < 15; claim += 1) ask(1);
  asked.length = 0;
  for (let claim = 0; claim < 4; claim += 1) ask(2);
  assert.deepEqual(asked, [64, 64, 64, 64]);
});

test("keys ahead are as many as the slots get through in half the time that they may be kept, and no more than are worth while", () => {
  const slower = paceOf(4);
  const quickest = paceOf(0);
  for (let answer = 0; answer < 10; answer += 1) {
    answerInFull(slower);
    answerInFull(quickest);
  }
  assert.equal(slower.ahead, 10);
  assert.equal(quickest.ahead, 256);
});

test("one slow item is felt for a while, and twice", () => {
  const pace = paceOf(1, 20);
  for (const _ of ["once", "again"]) {
    pace.note(41);
    assert.equal(pace.items, 1, "the mean is 6 ms");
    pace.note(1);
    assert.equal(pace.items, 1, "it is 5.4 ms");
    pace.note(1);
    assert.equal(pace.items, 5, "it is 4.8 ms");
    for (let item = 0; item < 40; item += 1) pace.note(1);
    assert.equal(pace.items, 24, "it is a little more than 1 ms");
  }
});

test("runs that were not worked off in their time make the next ones as short, twice, and those that were make them longer", () => {
  const pace = paceOf(0.1);
  assert.equal(pace.items, 64);
  for (let episode = 0; episode < 2; episode += 1) {
    pace.runOver(3, 64);
    assert.equal(pace.items, 3);
    pace.runOver(1, 3);
    assert.equal(pace.items, 1);
    const longer = [1, 2, 4, 8, 16, 32].map((covered) => {
      pace.runOver(covered, covered);
      return pace.items;
    });
    assert.deepEqual(longer, [2, 4, 8, 16, 32, 64]);
  }
});

test("a run that is shorter than it might be, and is worked off, changes nothing", () => {
  const pace = paceOf(0.1);
  pace.runOver(3, 64);
  pace.runOver(2, 2);
  assert.equal(pace.items, 3);
});

test("fewer keys are taken ahead where each brings a run", () => {
  const pace = paceOf(1);
  for (let count = 0; count < 4; count += 1) pace.answered({ max: 4, items: 16 }, keys(4));
  assert.equal(pace.ahead, 32);
  pace.answered({ max: 4, items: 16 }, keys(4, 10));
  assert.equal(pace.ahead, 4);
});
