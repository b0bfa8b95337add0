import assert from "node:assert/strict";
import { test } from "node:test";
import type { Clock } from "../../domain/clock.ts";
import { Pace } from "./pace.ts";

class Stage {
  now = 0;
  readonly pace: Pace;

  constructor() {
    const clock: Clock = {
      wall: () => this.now,
      monotonic: () => this.now,
      setTimer: () => ({ cancel: () => undefined }),
    };
    this.pace = new Pace(clock, false);
  }

  /** So many wait at any time, and replies come in bursts. */
  write(count: number, eachMs: number, waiting = 64, burst = 32): void {
    for (let place = 0; place < waiting; place += 1) this.pace.sent();
    for (let place = 1; place <= count; place += 1) {
      if (place % burst === 0) this.now += burst * eachMs;
      this.pace.heard();
      this.pace.sent();
    }
    for (let place = 0; place < waiting; place += 1) this.pace.heard();
  }

  writeTogether(batches: number, count: number, eachMs: number): void {
    for (let place = 0; place < batches; place += 1) {
      const began = this.pace.begin();
      this.now += count * eachMs;
      this.pace.end(began, count);
    }
  }
}

test("a server that syncs each write is known to be slow, for a while", () => {
  const stage = new Stage();
  stage.write(1_000, 0.2);
  assert.equal(stage.pace.isSlow, true, "the server is known to be slow");
  stage.now += 10_000;
  assert.equal(stage.pace.isSlow, false, "the server is not taken for slow");
  stage.write(1_000, 0.2);
  assert.equal(stage.pace.isSlow, true, "the server is known to be slow");
});

test("one that does not is not, although the machine stands still now and then", () => {
  const stage = new Stage();
  for (let times = 0; times < 20; times += 1) {
    stage.write(4_000, 0.02);
    stage.now += 100;
  }
  assert.equal(stage.pace.isSlow, false, "the server is not taken for slow");
});

test("few that wait say nothing about it", () => {
  const stage = new Stage();
  stage.write(1_000, 0.2, 8);
  assert.equal(stage.pace.isSlow, false, "the server is not taken for slow");
});

test("where batches are no quicker, writes go apart again", () => {
  const stage = new Stage();
  stage.write(1_000, 0.2);
  stage.writeTogether(8, 100, 0.05);
  assert.equal(stage.pace.isSlow, true, "the server is known to be slow");
  stage.writeTogether(8, 12, 0.3);
  assert.equal(stage.pace.isSlow, false, "the server is not taken for slow");
  stage.write(1_000, 0.2);
  assert.equal(stage.pace.isSlow, false, "the server is not taken for slow");
  stage.now += 60_000;
  stage.write(1_000, 0.2);
  assert.equal(stage.pace.isSlow, true, "the server is known to be slow");
});
