import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { grant } from "../../test/random/client/parts/granted-run.ts";
import type { Item } from "../engine/port.ts";
import { Run } from "./run.ts";

const SINCE = 1_000;
const DONE = { type: "done" } as const;

/** Its items are called a, a2, a3 and so on. */
function runOf(count: number): { readonly run: Run; readonly items: readonly Item[] } {
  const granted = grant("a", { monotonic: SINCE, wall: 0 });
  const behind = Array.from({ length: count - 1 }, (_, index) => ({ ...granted.item, id: `a${index + 2}` }));
  const run = new Run({ ...granted, ...(count === 1 ? {} : { behind }) });
  return { run, items: [granted.item, ...behind] };
}

function ended(...ids: readonly string[]): { readonly ended: readonly unknown[] } {
  return { ended: ids.map((id) => ({ id, ending: DONE })) };
}

describe("a run", () => {
  test("goes from item to item, and its report names those that ended", () => {
    const { run, items } = runOf(3);
    const [first, second, third] = items as [Item, Item, Item];
    assert.deepEqual(run.report(), ended(), "what is behind the first is to go back");
    assert.equal(run.next(first, DONE, SINCE), second);
    assert.deepEqual(run.report(), ended("a"));
    assert.equal(run.next(second, DONE, SINCE + 1), third);
    assert.deepEqual(run.report(), ended("a", "a2"));
    assert.equal(run.next(third, DONE, SINCE + 2), undefined);
    assert.deepEqual(run.report(), ended("a", "a2"), "the last one is settled by itself");
  });

  test("begins no further item once 50 ms have passed since it was asked for", () => {
    const { run, items } = runOf(3);
    const [first, second] = items as [Item, Item];
    assert.equal(run.next(first, DONE, SINCE + 49), second);
    assert.equal(run.next(second, DONE, SINCE + 50), undefined);
    assert.deepEqual(run.report(), ended("a"));
  });

  test("begins nothing any more when it was closed", () => {
    const { run, items } = runOf(3);
    const [first, second] = items as [Item, Item];
    assert.equal(run.next(first, DONE, SINCE), second);
    run.close();
    assert.equal(run.next(second, DONE, SINCE), undefined);
    assert.deepEqual(run.report(), ended("a"), "the store has not answered");
  });

  test("tells what has ended until the store has answered, and that it has once", () => {
    const { run, items } = runOf(3);
    const [first, second] = items as [Item, Item];
    run.next(first, DONE, SINCE);
    run.close();
    assert.deepEqual(run.report(), ended("a"));
    assert.deepEqual(run.report(), ended("a"), "a renewal that got no answer is repeated");
    assert.deepEqual(run.reported(), [{ item: first, ending: DONE }]);
    assert.deepEqual(run.reported(), [], "the answer to the repetition is no news");
    assert.deepEqual(run.finished, []);
    assert.deepEqual(run.report(), {}, "only the second is left");
    assert.equal(run.next(second, DONE, SINCE), undefined);
  });

  test("is reported 50 ms after it was asked for, if anything has ended", () => {
    const { run, items } = runOf(2);
    const [first] = items as [Item];
    assert.equal(run.reportDueAt, Infinity);
    run.next(first, DONE, SINCE + 10);
    assert.equal(run.reportDueAt, SINCE + 50);
    run.reported();
    assert.equal(run.reportDueAt, Infinity);
  });

  test("of one item has nothing to report", () => {
    const { run, items } = runOf(1);
    assert.deepEqual(run.report(), {});
    assert.equal(run.next(items[0] as Item, DONE, SINCE), undefined);
    assert.deepEqual(run.report(), {});
  });
});
