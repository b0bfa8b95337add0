/** How long a message stays ours: its hold is extended in time, and it counts as lost before it may be somebody else's. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../../test/manual-clock.ts";
import { ScriptedMessage, ScriptedSource } from "../../../test/relay/core/scripted-source.ts";
import { contextOf } from "../context.ts";
import { Upkeep } from "./upkeep.ts";

/** Held for one time at first, and for another with each extension. */
class ChangingHold extends ScriptedMessage {
  readonly extendedAt: number[] = [];
  readonly #clock: ManualClock;
  readonly #laterMs: number;
  #holdMs: number;

  constructor(clock: ManualClock, firstMs: number, laterMs: number) {
    super(new ScriptedSource("orders"), "m1", {});
    this.#clock = clock;
    this.#holdMs = firstMs;
    this.#laterMs = laterMs;
    Object.defineProperty(this, "holdMs", { get: () => this.#holdMs });
  }

  override async extend(): Promise<void> {
    await super.extend();
    this.extendedAt.push(this.#clock.monotonic());
    this.#holdMs = this.#laterMs;
  }
}

test("extensions that last for less than the first hold come more often", async () => {
  const clock = new ManualClock();
  const from = clock.monotonic();
  const message = new ChangingHold(clock, 600_000, 60_000);
  const lost: string[] = [];
  const upkeep = new Upkeep(contextOf({ clock }), "orders", message, (reason) => lost.push(reason));
  await clock.pass(300_000);
  upkeep[Symbol.dispose]();
  assert.deepEqual(lost, []);
  assert.deepEqual(
    message.extendedAt.map((at) => at - from),
    [200_000, 220_000, 240_000, 260_000, 280_000, 300_000],
  );
});

test("a message whose extensions hang is lost before its hold is over", async () => {
  const clock = new ManualClock();
  const message = new ScriptedMessage(new ScriptedSource("orders"), "m1", { holdMs: 3_000 });
  message.extend = () => new Promise(() => undefined);
  let isLost = false;
  const upkeep = new Upkeep(contextOf({ clock }), "orders", message, () => (isLost = true));
  await clock.pass(2_400);
  assert.equal(isLost, false);
  await clock.pass(200);
  assert.equal(isLost, true);
  upkeep[Symbol.dispose]();
  assert.equal(clock.timers, 0);
});
