/**
 * A worker, its guard and several commands, with anything happening to any of them in any order: no command outlives
 * what allows it, and none is ended without a reason. All processes are real.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Random } from "../../kit/random.ts";
import { again, Seeds, seedTimeoutMs } from "../../kit/seeds.ts";
import { shrink } from "../../kit/shrink.ts";
import { type Manner, type Plan, Scene, type Step } from "./scene.ts";

/** Real time is dear: what is not shrunk by then stays as long as it is. */
const SHRINK_MS = 20_000;

function drawPlan(seed: number): Plan {
  const random = new Random(seed);
  // With a long lease whatever ends a command is not the end of its lease.
  const isLong = random.chance(0.5);
  const leaseMs = isLong ? 20_000 : random.pick([1_500, 3_000]);
  const script: Step[] = [];
  let runs = 0;
  const start = (...manners: readonly Manner[]): void => {
    runs += 1;
    const manner = random.pick(
      manners.length > 0 ? manners : (["polite", "polite", "stubborn", "stubborn", "brief", "leaves-a-child"] as const),
    );
    script.push({ step: "start", run: runs, manner, killAfterMs: random.pick([200, 6_000]) });
  };
  if (!isLong && random.chance(0.5)) {
    // All are over, and then there are others, for longer than a lease.
    start("brief");
    script.push({ step: "pass", ms: 700 });
    start("polite", "stubborn");
    script.push({ step: "pass", ms: leaseMs });
  }
  for (let count = random.between(1, 3); count > 0; count -= 1) start();
  for (let count = random.between(4, 8); count > 0; count -= 1) {
    const run = random.between(1, runs);
    const step = random.pick([
      "start",
      "lose",
      "lose",
      "lapse",
      "renew",
      "kill-all",
      "kill-guard",
      "freeze",
      "pass",
      "pass",
    ] as const);
    if (step === "start") start();
    else if (step === "pass") script.push({ step, ms: random.pick([50, 300, 900]) });
    else if (step === "lose") script.push({ step, run });
    else if (step === "lapse" || step === "renew") script.push(isLong ? { step: "lose", run } : { step, run });
    else if (step !== "freeze") script.push({ step });
    else if (!isLong) script.push({ step }, { step: "thaw" });
  }
  if (random.chance(0.5)) script.push({ step: "kill-worker" }, { step: "pass", ms: 300 });
  return { seed, leaseMs, script };
}

function play(plan: Plan): Promise<string | undefined> {
  return new Scene(plan).play();
}

const skip = process.platform === "linux" ? false : "reads /proc";

describe("the guard of a worker's commands", { skip, timeout: seedTimeoutMs(180_000) }, () => {
  test("lets no command outlive what allows it, and ends none without a reason", async (context) => {
    const seeds = new Seeds({ seeds: 6, longestMs: 30_000 });
    const lane = async (): Promise<void> => {
      for (const seed of seeds) {
        const plan = drawPlan(seed);
        const first = await play(plan);
        if (first === undefined) continue;
        seeds.stop();
        const giveUpAt = performance.now() + SHRINK_MS;
        const script = await shrink(plan.script, async (shorter) => {
          if (performance.now() > giveUpAt) return false;
          return (await play({ ...plan, script: shorter })) !== undefined;
        });
        const told = [{ ...plan, script: [] }, ...script].map((one) => JSON.stringify(one)).join("\n");
        assert.fail(`${first}\n${again(seed)}\n${told}`);
      }
    };
    // They wait more than they work.
    await Promise.all([lane(), lane(), lane(), lane()]);
    seeds.tell(context, "guards");
  });
});
