/**
 * A circuit before a target that goes away, and comes back, again and again: it opens when it should, lets one probe at a
 * time through, and closes soon after the target is well, the tenth time as the first.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { contextOf } from "../../../src/relay/context.ts";
import { Breaker } from "../../../src/relay/processors/breaker.ts";
import { Random } from "../../kit/random.ts";
import { again, Seeds, seedTimeoutMs } from "../../kit/seeds.ts";
import { shrink } from "../../kit/shrink.ts";
import { ManualClock } from "../../manual-clock.ts";

/** How the target is for a while: well, with one key that always fails, not serving, or accepting no connection. */
interface Episode {
  readonly target: "well" | "bad-key" | "unserved" | "away";
  readonly ms: number;
}

interface Plan {
  readonly seed: number;
  readonly failures: number;
  readonly openMs: number;
  readonly concurrency: number;
  readonly knocks: boolean;
  readonly episodes: readonly Episode[];
}

const STEP_MS = 25;
const PROBE_MS = 1_000;
/** Of the knocks, from the page of the relay: a receiver that is back waits no longer. */
const LONGEST_KNOCK_MS = 2_000;
const FIRST_KNOCK_MS = 250;

function drawPlan(seed: number): Plan {
  const random = new Random(seed);
  const episodes = Array.from({ length: random.between(4, 10) }, (_, index): Episode => {
    const target = random.pick(["bad-key", "unserved", "away"] as const);
    return index % 2 === 0
      ? { target: "well", ms: random.pick([500, 4_000]) }
      : { target, ms: random.pick([200, 1_000, 9_000]) };
  });
  return {
    seed,
    failures: random.between(2, 4),
    openMs: random.pick([500, 3_000]),
    concurrency: random.between(1, 4),
    knocks: random.chance(0.7),
    episodes: [...episodes, { target: "well", ms: 12_000 }],
  };
}

async function play(plan: Plan): Promise<string | undefined> {
  const clock = new ManualClock();
  const random = new Random(plan.seed + 1);
  let target: Episode["target"] = "well";
  let state: "open" | "probing" | "closed" = "closed";
  const problems: string[] = [];
  const inARow = new Set<string>();
  let wasUnreachable = false;
  let isServed = false;
  const context = contextOf({
    clock,
    random: () => random.next(),
    onEvent: (event) => {
      if (event.type !== "circuit") return;
      if (event.state === "open" && state === "closed" && !wasUnreachable && inARow.size < plan.failures)
        problems.push(`It opened after ${inARow.size} failures in a row of different keys, of ${plan.failures}.`);
      // No probe of these is under way for as long as one that counts as served.
      if (event.state === "closed" && !isServed) problems.push("It closed, and nothing was served.");
      state = event.state;
    },
  });
  const knock = async (): Promise<boolean> => target !== "away";
  const breaker = new Breaker(
    context,
    { failures: plan.failures, openMs: plan.openMs },
    { target: "here", probeMs: PROBE_MS, onRoom: () => undefined, knock: plan.knocks ? knock : undefined },
  );
  let underWay = 0;
  let probes = 0;
  let began = 0;
  const deliver = (): void => {
    const isProbe = state !== "closed";
    if (!breaker.enter()) return (problems.push("There was room, and no way in."), undefined);
    if (isProbe) probes += 1;
    if (probes > 1) problems.push("Two probes were under way.");
    underWay += 1;
    began += 1;
    const key = target === "bad-key" && random.chance(0.5) ? "bad" : `k${began}`;
    clock.setTimer(random.pick([0, 10, 60]), () => {
      underWay -= 1;
      if (isProbe) probes -= 1;
      wasUnreachable = target === "away";
      if (random.chance(0.1)) return breaker.brokenOff();
      if (target === "away") breaker.unreachable("refused");
      else if (target === "unserved" || key === "bad") {
        inARow.add(key);
        breaker.failed(key, "503");
        if (state === "closed" && inARow.size >= plan.failures)
          problems.push(`${inARow.size} keys have failed in a row, of ${plan.failures}, and the circuit is closed.`);
      } else {
        inARow.clear();
        isServed = true;
        breaker.succeeded();
        isServed = false;
      }
    });
  };
  for (const episode of plan.episodes) {
    const { ms } = episode;
    target = episode.target;
    const before = began;
    const wasAway = breaker.isUnreachable;
    for (let passed = 0; passed < ms; passed += STEP_MS) {
      while (underWay < plan.concurrency && breaker.room > 0 && problems.length === 0) {
        deliver();
      }
      await clock.pass(STEP_MS);
      const lateMs = (wasAway && plan.knocks ? LONGEST_KNOCK_MS : plan.openMs) + 6 * STEP_MS;
      if (target === "well" && passed > lateMs && breaker.isOpen)
        problems.push(`${passed} ms after it was well again the way was not open.`);
      if (problems.length > 0) return problems[0];
    }
    if (target === "away" && plan.knocks && began - before > plan.concurrency * 8 + 1)
      return `${began - before} deliveries were sent to a target that accepts no connection.`;
    if (target === "unserved" && state === "closed" && inARow.size >= plan.failures)
      return `${inARow.size} keys have failed in a row, of ${plan.failures}, and the circuit is closed.`;
  }
  // Away for a moment, after all that: the first knock comes as soon as it ever did.
  if (plan.knocks && state === "closed") {
    breaker.unreachable("refused");
    await clock.pass(FIRST_KNOCK_MS + 1);
    if (breaker.room !== 1) return "The first knock after an outage of a moment came late.";
  }
  breaker.close();
  // Until what is under way has ended.
  await clock.pass(100);
  if (clock.timers > 0) return `It left ${clock.timers} timers behind.`;
  return undefined;
}

describe("a circuit", { timeout: seedTimeoutMs(30_000) }, () => {
  test("opens and closes as its target comes and goes", async (context) => {
    const seeds = new Seeds({ seeds: 25, longestMs: 1_500 });
    for (const seed of seeds) {
      const plan = drawPlan(seed);
      if ((await play(plan)) === undefined) continue;
      const episodes = await shrink(
        plan.episodes,
        async (shorter) => (await play({ ...plan, episodes: shorter })) !== undefined,
      );
      const problem = await play({ ...plan, episodes });
      assert.fail(`${String(problem)}\n${again(seed)}\n${JSON.stringify({ ...plan, episodes })}`);
    }
    seeds.tell(context, "circuits");
  });
});
