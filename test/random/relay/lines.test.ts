/**
 * Those who wait for a slot, for a key, or for their share, in any order and with any of them leaving: the most urgent
 * goes first, of equals the one that came first, and nobody is forgotten.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { strictChoice, weightedChoice } from "../../../src/relay/choice/choice.ts";
import { Slots } from "../../../src/relay/slots.ts";
import { Random } from "../../kit/random.ts";
import { again, Seeds, seedTimeoutMs } from "../../kit/seeds.ts";
import { shrink } from "../../kit/shrink.ts";

type SlotStep =
  | { readonly step: "take" | "release" }
  | { readonly step: "wait"; readonly rank: number }
  /** Somebody who waits, or who has waited before, gives up. */
  | { readonly step: "abort"; readonly who: number };

interface SlotWaiter {
  readonly rank: number;
  readonly leave: AbortController;
  /** What it was told. */
  got: boolean | undefined;
  /** It should have been told that it has a slot. */
  isModelled: boolean;
}

function drawSlotSteps(random: Random): readonly SlotStep[] {
  return Array.from({ length: random.between(5, 60) }, (_, index): SlotStep => {
    const step = random.pick(["take", "release", "release", "wait", "wait", "wait", "abort"] as const);
    if (step === "wait") return { step, rank: random.between(0, 2) };
    return step === "abort" ? { step, who: random.between(0, index) } : { step };
  });
}

async function playSlots(size: number, steps: readonly SlotStep[]): Promise<string | undefined> {
  let changes = 0;
  const slots = new Slots(size, () => (changes += 1));
  const all: SlotWaiter[] = [];
  let used = 0;
  let line: number[] = [];
  const give = (): void => {
    const [first] = line.toSorted((one, other) => (all[one]?.rank ?? 0) - (all[other]?.rank ?? 0) || one - other);
    const next = first === undefined ? undefined : all[first];
    if (next === undefined) used -= 1;
    else next.isModelled = true;
    line = line.filter((one) => one !== first);
  };
  for (const step of steps) {
    if (step.step === "take" && slots.free > 0) {
      slots.take();
      used += 1;
    } else if (step.step === "release" && used > 0) {
      slots.release();
      give();
    } else if (step.step === "wait") {
      const one: SlotWaiter = { rank: step.rank, leave: new AbortController(), got: undefined, isModelled: false };
      all.push(one);
      if (used < size) {
        used += 1;
        one.isModelled = true;
      } else line.push(all.length - 1);
      void slots.wait(step.rank, one.leave.signal).then((got) => (one.got = got));
    } else if (step.step === "abort") {
      all[step.who]?.leave.abort();
      line = line.filter((one) => one !== step.who);
    }
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (slots.used !== used) return `${slots.used} slots are used, and ${used} should be.`;
    for (const [index, { got, isModelled }] of all.entries()) {
      const expected = isModelled ? true : line.includes(index) ? undefined : false;
      if (got !== expected)
        return `Number ${index} was told ${String(got)}, and should have been told ${String(expected)}.`;
    }
  }
  return changes < 0 ? "It never told of a change." : undefined;
}

/** Sources that always have something get their share, whatever the others did before. */
function playShares(random: Random): string | undefined {
  const weights = Array.from({ length: random.between(2, 4) }, () => random.between(1, 9));
  const all = weights.map((_, index) => index);
  const choice = weightedChoice(weights);
  for (let episode = 0; episode < 3; episode += 1) {
    // For a while some have nothing, or all of them.
    const idle = new Set(all.filter(() => random.chance(0.5)));
    for (let round = random.between(0, 200); round > 0; round -= 1) {
      const candidates = all.filter((source) => !idle.has(source));
      if (candidates.length === 0) break;
      for (const { source, max } of choice.plan(candidates, random.between(1, 4)))
        choice.took(source, random.between(0, max));
    }
    // Then all of them always have more than is asked for.
    const taken = weights.map(() => 0);
    const passedOver = weights.map(() => 0);
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    for (let round = 0; round < 300; round += 1) {
      const room = random.between(1, 3);
      const plan = choice.plan(all, room);
      const planned = plan.reduce((sum, { max }) => sum + max, 0);
      if (planned !== room) return `${planned} were planned, for ${room} slots.`;
      for (const { source, max } of plan) {
        choice.took(source, max);
        taken[source] = (taken[source] ?? 0) + max;
        for (const other of all) passedOver[other] = other === source ? 0 : (passedOver[other] ?? 0) + max;
      }
      for (const [source, weight] of weights.entries()) {
        // Said of messages one by one. Here a source may have had four at once before, and others three since.
        const bound = 5 * (total / weight) + weights.length + 6;
        if ((passedOver[source] ?? 0) > bound)
          return `Source ${source} of weights ${weights.join(", ")} was passed over by ${String(passedOver[source])} messages.`;
      }
    }
  }
  const [first] = strictChoice().plan(all.slice(1), 5);
  return first?.source === 1 && first.max === 5 ? undefined : "The most urgent source did not get all the room.";
}

describe("lines of the relay", { timeout: seedTimeoutMs(30_000) }, () => {
  test("slots go to the most urgent, then to the one that came first", async (context) => {
    const seeds = new Seeds({ seeds: 200, longestMs: 700 });
    for (const seed of seeds) {
      const random = new Random(seed);
      const size = random.between(1, 3);
      const steps = drawSlotSteps(random);
      if ((await playSlots(size, steps)) === undefined) continue;
      const script = await shrink(steps, async (shorter) => (await playSlots(size, shorter)) !== undefined);
      assert.fail(`${String(await playSlots(size, script))}\n${again(seed)}\n${JSON.stringify({ size, script })}`);
    }
    seeds.tell(context, "lines for slots");
  });

  test("each source has its share", (context) => {
    const seeds = new Seeds({ seeds: 60, longestMs: 500 });
    for (const seed of seeds) {
      const problem = playShares(new Random(seed));
      if (problem !== undefined) assert.fail(`${problem}\n${again(seed)}`);
    }
    seeds.tell(context, "choices by weight");
  });
});
