import { type ConformanceCase, casesOf } from "../case.ts";
import { atMost, equal, present } from "../expect.ts";
import { keysOf, type Scene } from "../scene.ts";

export const urgent: readonly ConformanceCase[] = casesOf("G8", {
  "among ready keys the most urgent level goes first": async (scene) => {
    for (const level of ["low", "normal", "high"]) {
      await scene.submit(`${level}1`, { level });
      await scene.submit(`${level}2`, { level });
    }
    const expected = ["high1", "high2", "normal1", "normal2", "low1", "low2"];
    equal(keysOf(await scene.claimReady()), expected, "Keys in the order in which they are handed out");
  },

  "one by one the order is the same": async (scene) => {
    for (const level of ["low", "normal", "high"]) await scene.submit(level, { level });
    equal(keysOf(await scene.claimCount(1)), ["high"], "The first");
    await scene.submit("another", { level: "high" });
    const next = [await scene.claimOne(), await scene.claimOne(), await scene.claimOne()];
    equal(keysOf(next), ["another", "normal", "low"], "The others");
  },

  "a queue's own levels go in their own order": async (scene) => {
    const levels = ["zebra", "yak", "x-ray", "ant", "bee"];
    const queue = await scene.newQueue(undefined, levels);
    for (const level of levels.toReversed()) await scene.submit(level, { queue, level });
    equal(keysOf(await scene.claimReady({ queue })), levels, "Keys in the order in which they are handed out");
  },

  "within a level the key goes first that was ready first": async (scene) => {
    const keys = ["z", "m", "a", "q"];
    for (const key of keys) await scene.submit(key);
    await scene.submit("z");
    equal(keysOf(await scene.claimReady()), keys, "Keys in the order in which they are handed out");
  },

  "an urgent item lifts a key that waits at a lower level": async (scene) => {
    await scene.submit("normal");
    await scene.submit("k", { level: "low" });
    await scene.submit("k", { level: "high" });
    equal(keysOf(await scene.claimReady()), ["k", "normal"], "Keys in the order in which they are handed out");
  },

  "a lifted key falls back when its urgent item is done": async (scene) => {
    await scene.submit("k", { level: "low" });
    await scene.submit("k", { level: "high" });
    await scene.submit("normal");
    const lifted = await scene.claimOne();
    equal([lifted.item.key, lifted.item.level], ["k", "high"], "What goes first");
    await scene.done(lifted);
    const rest = await scene.claimReady();
    equal(
      rest.map(({ item }) => [item.key, item.level]),
      [
        ["normal", "normal"],
        ["k", "low"],
      ],
      "What goes next",
    );
  },

  "an urgent item waits for its key, but goes first when the key is free": async (scene) => {
    await scene.submit("k", { level: "low" });
    const running = await scene.claimOne();
    await scene.submit("normal");
    await scene.submit("k", { level: "high" });
    await scene.done(running);
    equal(keysOf(await scene.claimReady()), ["k", "normal"], "Keys in the order in which they are handed out");
  },

  "an urgent item goes first after a hold": async (scene) => {
    await scene.submit("k", { level: "low" });
    const lease = present(await scene.hold("k"), "A key that waits can be held");
    await scene.submit("normal");
    await scene.submit("k", { level: "high" });
    await scene.finish({ lease }, { type: "release" });
    const order = (await scene.claimReady()).map(({ item }) => [item.key, item.level]);
    equal(
      order,
      [
        ["k", "high"],
        ["normal", "normal"],
      ],
      "What goes first",
    );
  },

  "a delayed urgent item lifts its key when it is due": async (scene) => {
    await scene.submit("k", { level: "low" });
    await scene.submit("normal");
    await scene.submit("k", { level: "high", delayMs: 50 });
    await scene.letPass(100);
    equal(keysOf(await scene.claimReady()), ["k", "normal"], "Keys in the order in which they are handed out");
  },

  "without patience running out, less urgent work waits": async (scene) => {
    await scene.submit("low", { level: "low" });
    await submitUrgent(scene, 12);
    const keys = await takeTurns(scene, 12, 3_600_000);
    equal(keys.includes("low"), false, "Less urgent work before the urgent work is done");
  },

  "less urgent work does not starve once it has waited too long": async (scene) => {
    await scene.submit("low", { level: "low" });
    await scene.letPass(600);
    await submitUrgent(scene, 16);
    // The turns take less than the patience: what was waited before anybody claimed has to count.
    const keys = await takeTurns(scene, 16, 500);
    // A store across a network may learn a turn or two late that it is time.
    atMost(keys.includes("low") ? keys.indexOf("low") + 1 : 17, 10, "Turns until the less urgent work is taken");
    const lessUrgent = keys.filter((key) => key === "low").length;
    equal(lessUrgent, 1, "Turns that the less urgent work took");
  },
});

async function submitUrgent(scene: Scene, count: number): Promise<void> {
  await scene.engine.submit(
    Array.from({ length: count }, (_, index) => scene.entry(`high${index}`, { level: "high" })),
  );
}

/** Keys that one claimer takes, one by one. */
async function takeTurns(scene: Scene, count: number, patienceMs: number): Promise<string[]> {
  const keys: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const grant = await scene.claimOne({ patienceMs });
    keys.push(grant.item.key);
    await scene.done(grant);
  }
  return keys;
}
