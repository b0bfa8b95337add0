/** Plays a script on the real and on the simulated server, and tells the first step that they answer differently. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { shrink } from "../kit/shrink.ts";
import { type Answer, Player, type Stage } from "./play.ts";
import { setUp, type Step, tearDown } from "./script.ts";

export interface Stages {
  readonly real: Stage;
  readonly simulated: Stage;
}

export interface Difference {
  /** The steps so far. The last one is answered differently. */
  readonly played: readonly Step[];
  readonly real: Answer;
  readonly simulated: Answer;
}

/** The real server tells its consumers of new messages after it has acknowledged them. */
const LOOKS = 20;
const LOOK_MS = 5;
/** Some things the real one does in one order or the other. The simulated one has its usual order: a difference is one that stays. */
const TIMES = 3;

/** Plays a whole script. */
export async function firstDifference(stages: Stages, script: readonly Step[]): Promise<Difference | undefined> {
  const real = new Player(stages.real, "real");
  const simulated = new Player(stages.simulated, "simulated");
  for (const [place, step] of script.entries()) {
    const expected = await simulated.play(step);
    let actual = await real.play(step);
    for (let look = 1; look < LOOKS && isLook(step) && !isDeepStrictEqual(actual, expected); look += 1) {
      await sleep(LOOK_MS);
      actual = await real.play(step);
    }
    if (isDeepStrictEqual(actual, expected)) continue;
    return { played: script.slice(0, place + 1), real: actual, simulated: expected };
  }
  return undefined;
}

/** Plays a script on streams that are made for it, and removed after it. The difference is told with as few steps as it takes. */
export async function shortestDifference(stages: Stages, script: readonly Step[]): Promise<Difference | undefined> {
  const play = async (steps: readonly Step[]): Promise<Difference | undefined> => {
    const found = await firstDifference(stages, [...setUp(), ...steps]);
    const left = await firstDifference(stages, tearDown());
    return found ?? left;
  };
  const again = async (steps: readonly Step[]): Promise<Difference | undefined> => {
    let found: Difference | undefined;
    for (let time = 0; time < TIMES; time += 1) {
      found = await play(steps);
      if (found === undefined) return undefined;
    }
    return found;
  };
  const whole = await again(script);
  if (whole === undefined) return undefined;
  const shortest = await shrink(script, async (steps) => (await again(steps)) !== undefined);
  // A difference that comes and goes is told as it was first seen.
  return (await play(shortest)) ?? whole;
}

export function assertAlike(difference: Difference | undefined, hint: string): void {
  if (difference === undefined) return;
  const { played, real, simulated } = difference;
  const story = played.map((each) => `  ${JSON.stringify(each)}`).join("\n");
  try {
    assert.deepEqual(simulated, real);
  } catch (error) {
    assert.fail(
      `The simulated server (actual) differs from the real one (expected); ${hint}:\n${story}\n${String(error)}`,
    );
  }
}

function isLook(step: Step): boolean {
  return step.kind === "api" && step.subject.startsWith("CONSUMER.INFO");
}
