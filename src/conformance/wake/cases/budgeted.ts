import type { HintResult } from "../../../wake/port.ts";
import { atMost, equal, ok } from "../../expect.ts";
import { type WakeCase, wakeCasesOf } from "../case.ts";

const TAKERS = 40;
const BUDGET = 20;
const ADDERS = 10;

/** Budgets that all processes share. */
export const budgeted: readonly WakeCase[] = [
  ...wakeCasesOf(
    "budgeted",
    {
      "no budget is missing, not empty": async (scene) => {
        const hints = await scene.openHints();
        equal(await hints.take(scene.channel("cars")), "missing", "Taking from a budget that nobody made");
        equal(await hints.take(scene.channel("cars")), "missing", "Taking a second time");
      },

      "as many can be taken as were added, by whoever": async (scene) => {
        const [one, other] = [await scene.openHints(), await scene.openHints()];
        const name = scene.channel("cars");
        await one.add(name, 2);
        await other.add(name, 1);
        const results: HintResult[] = [];
        for (const hints of [other, one, other, one, other]) results.push(await hints.take(name));
        equal(results, ["taken", "taken", "taken", "empty", "empty"], "Five takes from a budget of three");
        await one.add(name, 1);
        equal(await other.take(name), "taken", "A take after more was added");
      },

      "budgets are apart": async (scene) => {
        const hints = await scene.openHints();
        const names = ["cars", "Cars", "cars-1", "cars_1", "c"].map((name) => scene.channel(name));
        for (const [index, name] of names.entries()) await hints.add(name, index + 1);
        const found: number[] = [];
        for (const name of names) found.push(await scene.drain(hints, name));
        equal(found, [1, 2, 3, 4, 5], "What was in each budget");
      },

      "no slot is taken twice, however many reach for it": async (scene) => {
        const [one, other] = [await scene.openHints(), await scene.openHints()];
        const name = scene.channel("cars");
        await one.add(name, BUDGET);
        const takes = Array.from({ length: TAKERS }, (_, number) => (number % 2 === 0 ? one : other).take(name));
        const results = await Promise.all(takes);
        const taken = results.filter((result) => result === "taken").length;
        ok(!results.includes("missing"), "A budget that is there is not missing");
        atMost(taken, BUDGET, "Slots taken by many at once");
        ok(taken > 0, "However many reach for a slot, somebody gets one");
        equal(taken + (await scene.drain(one, name)), BUDGET, "Slots taken in all");
      },

      "what is added by many at once adds up, or is refused": async (scene) => {
        const [one, other] = [await scene.openHints(), await scene.openHints()];
        const name = scene.channel("cars");
        const adds = await Promise.allSettled(
          Array.from({ length: ADDERS }, (_, number) => (number % 2 === 0 ? one : other).add(name, 3)),
        );
        const added = adds.filter(({ status }) => status === "fulfilled").length;
        ok(added > 0, "However many add at once, somebody does");
        equal(await scene.drain(other, name), added * 3, "What is in the budget");
      },
    },
    ["hints"],
  ),

  ...wakeCasesOf(
    "budgeted",
    {
      "a budget vanishes a minute after its last change": async (scene) => {
        const hints = await scene.openHints();
        await hints.add(scene.channel("cars"), 3);
        await hints.add(scene.channel("vans"), 1);
        equal(await hints.take(scene.channel("vans")), "taken", "Taking from a fresh budget");
        await scene.age();
        equal(await hints.take(scene.channel("cars")), "missing", "A budget of which something was left");
        equal(await hints.take(scene.channel("vans")), "missing", "A budget that was empty");
      },
    },
    ["hints", "age"],
  ),
];
