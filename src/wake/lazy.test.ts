/** A carrier that is not there at first, told by a clock that a test moves. A rejection that nothing waits for fails a test, too. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { aftermath, ManualClock } from "../../test/manual-clock.ts";
import { lazyWake } from "./lazy.ts";
import { MemoryWakes } from "./memory.ts";

const RETRY_MS = 1_000;

test("a carrier that is away is tried every second, also when nothing waits for it, and then used", async () => {
  const clock = new ManualClock();
  const carrier = new MemoryWakes({ clock });
  let opens = 0;
  const open = async (): Promise<ReturnType<MemoryWakes["connect"]>> => {
    opens += 1;
    if (opens <= 3) throw new Error(`away ${opens}`);
    return carrier.connect();
  };
  const wake = lazyWake("carrier", open, clock);
  await aftermath();
  for (let tries = 1; tries <= 3; tries += 1) {
    assert.equal(opens, tries);
    await assert.rejects(wake.publish([]), { message: `away ${tries}` }, "what would come too late is refused");
    await clock.pass(RETRY_MS - 1);
    assert.equal(opens, tries);
    await clock.pass(1);
  }
  assert.equal(opens, 4);
  const heard: string[] = [];
  await wake.listen(
    "cars",
    (text) => heard.push(text),
    () => undefined,
  );
  await wake.publish([{ channel: "cars", text: "work" }]);
  await aftermath();
  assert.deepEqual(heard, ["work"]);
  await clock.pass(10 * RETRY_MS);
  assert.equal(opens, 4, "one connection is enough");
  await wake.close();
});

test("whoever listens while the carrier is away is connected by the next try that succeeds", async () => {
  const clock = new ManualClock();
  const carrier = new MemoryWakes({ clock });
  let isThere = false;
  const wake = lazyWake(
    "carrier",
    async () => {
      if (!isThere) throw new Error("away");
      return carrier.connect();
    },
    clock,
  );
  await aftermath();
  let isListening = false;
  void wake
    .listen(
      "cars",
      () => undefined,
      () => undefined,
    )
    .then(() => (isListening = true));
  isThere = true;
  await aftermath();
  assert.equal(isListening, false);
  await clock.pass(RETRY_MS);
  await aftermath();
  assert.equal(isListening, true);
  await wake.close();
});

test("one that is closed while its carrier is away tries no more", async () => {
  const clock = new ManualClock();
  let opens = 0;
  const wake = lazyWake(
    "carrier",
    async () => {
      opens += 1;
      throw new Error("away");
    },
    clock,
  );
  await clock.pass(RETRY_MS);
  assert.equal(opens, 2);
  await wake.close();
  assert.equal(clock.timers, 0);
  await clock.pass(10 * RETRY_MS);
  assert.equal(opens, 2);
});
