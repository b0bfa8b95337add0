import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { ManualClock } from "../../test/manual-clock.ts";
import { type Resident, Solitude, solitudeOf } from "./solitude.ts";

let solitude: Solitude;
let told: string[];

class Worker implements Resident {
  isQuiet = true;
  readonly #name: string;

  constructor(name: string) {
    this.#name = name;
    solitude.enter(this);
  }

  hush(): void {
    told.push(`${this.#name} hush`);
  }

  beginAlone(): void {
    this.isQuiet = false;
    told.push(`${this.#name} alone`);
  }

  goOn(): void {
    told.push(`${this.#name} on`);
  }

  /** What ran alone has ended. */
  over(): void {
    this.isQuiet = true;
    solitude.over(this);
  }
}

let a: Worker;
let b: Worker;

beforeEach(() => {
  solitude = new Solitude();
  told = [];
  a = new Worker("a");
  b = new Worker("b");
});

function news(): readonly string[] {
  return told.splice(0);
}

describe("an item that is to run alone", () => {
  test("waits until all workers are quiet, and then they go on, each time", () => {
    for (const _ of ["once", "again"]) {
      b.isQuiet = false;
      solitude.ask(a);
      assert.ok(solitude.isWanted);
      assert.deepEqual(news(), ["a hush", "b hush"]);
      solitude.look();
      assert.deepEqual(news(), [], "b still works");
      b.isQuiet = true;
      solitude.look();
      assert.deepEqual(news(), ["a alone"]);
      assert.ok(solitude.isWanted);
      a.over();
      assert.ok(!solitude.isWanted);
      assert.deepEqual(news(), ["a on", "b on"]);
      a.over();
      assert.deepEqual(news(), [], "what is over twice is over once");
    }
  });

  test("of a worker that is busy itself waits, too", () => {
    a.isQuiet = false;
    solitude.ask(a);
    b.isQuiet = true;
    assert.deepEqual(news(), ["a hush", "b hush"]);
    a.isQuiet = true;
    solitude.look();
    assert.deepEqual(news(), ["a alone"]);
  });

  test("has the process for itself until its worker says so", () => {
    solitude.ask(a);
    assert.deepEqual(news(), ["a hush", "b hush", "a alone"]);
    // Another worker's word does not end it.
    solitude.over(b);
    assert.ok(solitude.isWanted);
    // As far as anybody can see nothing runs; but a has not said so.
    a.isQuiet = true;
    solitude.look();
    assert.deepEqual(news(), [], "it begins once");
    a.over();
    assert.deepEqual(news(), ["a on", "b on"]);
    solitude.ask(b);
    assert.deepEqual(news(), ["a hush", "b hush", "b alone"]);
  });

  test("is not waited for when its worker does not want it any more", () => {
    b.isQuiet = false;
    solitude.ask(a);
    news();
    solitude.over(a);
    assert.ok(!solitude.isWanted);
    assert.deepEqual(news(), ["a on", "b on"]);
  });
});

describe("a worker that stops", () => {
  test("is not waited for", () => {
    b.isQuiet = false;
    solitude.ask(a);
    news();
    solitude.leave(b);
    assert.deepEqual(news(), ["a alone"]);
  });

  test("while its item runs alone lets the others go on", () => {
    solitude.ask(a);
    news();
    solitude.leave(a);
    assert.deepEqual(news(), ["b on"]);
    solitude.ask(b);
    news();
    solitude.over(a);
    assert.deepEqual(news(), [], "its item ended too late to matter");
    b.over();
    assert.deepEqual(news(), ["b on"]);
  });

  test("and waited for solitude lets the others go on", () => {
    b.isQuiet = false;
    solitude.ask(a);
    news();
    solitude.leave(a);
    assert.deepEqual(news(), ["b on"]);
    assert.ok(!solitude.isWanted);
  });
});

test("all workers with one clock share it, and those of another process do not", () => {
  const clock = new ManualClock();
  assert.equal(solitudeOf(clock), solitudeOf(clock));
  assert.notEqual(solitudeOf(clock), solitudeOf(new ManualClock()));
});
