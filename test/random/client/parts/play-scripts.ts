import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "../../../kit/random.ts";
import { again, Seeds, seedTimeoutMs } from "../../../kit/seeds.ts";
import { shrink } from "../../../kit/shrink.ts";

export interface ScriptKind<Setting, Deed> {
  readonly setting: (random: Random) => Setting;
  readonly deed: (random: Random, setting: Setting) => Deed;
  /** Up to so many deeds. */
  readonly longest: number;
  /** Says what the part did otherwise than its model, or nothing. */
  readonly play: (setting: Setting, deeds: readonly Deed[]) => Promise<string | undefined>;
}

const BOUNDS = { seeds: 400, longestMs: 2_000 };

/** Plays one script for each seed on a clock that it moves itself, beside a model. A script that fails is shortened. */
export function addScriptTest<Setting, Deed>(
  title: string,
  { setting: drawSetting, deed, longest, play }: ScriptKind<Setting, Deed>,
): void {
  const playSafely = async (setting: Setting, deeds: readonly Deed[]): Promise<string | undefined> => {
    try {
      return await play(setting, deeds);
    } catch (error) {
      return `it threw ${error instanceof Error ? (error.stack ?? "") : String(error)}`;
    }
  };

  test(title, { timeout: seedTimeoutMs(120_000) }, async (context) => {
    const seeds = new Seeds(BOUNDS);
    for (const seed of seeds) {
      const random = new Random(seed);
      const setting = drawSetting(random);
      const deeds = Array.from({ length: random.between(1, longest) }, () => deed(random, setting));
      if ((await playSafely(setting, deeds)) === undefined) continue;
      const short = await shrink(deeds, async (rest) => (await playSafely(setting, rest)) !== undefined);
      const problem = await playSafely(setting, short);
      const script = short.map((one) => JSON.stringify(one)).join("\n  ");
      assert.fail(
        `${problem ?? "It failed once."}\n${again(seed)}. Shortened: ${JSON.stringify(setting)}\n  ${script}`,
      );
    }
    seeds.tell(context, title);
  });
}

/** The first place in which two stories differ. */
export function difference(told: readonly string[], expected: readonly string[]): string | undefined {
  for (let index = 0; index < Math.max(told.length, expected.length); index += 1) {
    if (told[index] === expected[index]) continue;
    const before = expected.slice(Math.max(0, index - 3), index).join("; ");
    return `after [${before}] comes "${told[index] ?? "nothing"}", and should come "${expected[index] ?? "nothing"}"`;
  }
  return undefined;
}
