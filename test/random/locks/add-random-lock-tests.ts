import assert from "node:assert/strict";
import { test } from "node:test";
import { Random } from "../../kit/random.ts";
import { again, type Seeds, seedTimeoutMs } from "../../kit/seeds.ts";
import { shrink } from "../../kit/shrink.ts";
import { type LockStore, messageOf, Player } from "./player.ts";
import { describeScript, drawScript, type ScriptBounds, type Step } from "./script.ts";

export interface RandomLockOptions extends ScriptBounds {
  /** Begun when the test is. */
  readonly seeds: () => Seeds;
  /** Scripts at a time: those who vanish are waited for side by side. */
  readonly atATime: number;
  /** Asked for each script: the same store for all, or a new one. */
  readonly open: () => LockStore;
  /** Makes time pass until this is over, where time does not pass by itself. */
  readonly run?: <T>(playing: Promise<T>) => Promise<T>;
}

/** What is found by then is short enough. */
const LONGEST_SHRINK_MS = 60_000;

/** Random scripts of everything that a store of locks can be asked, step by step, against a model. */
export function addRandomLockTests(
  title: string,
  { seeds: begin, atATime, open, run = (playing) => playing, ...scripts }: RandomLockOptions,
): void {
  test(
    `${title} answer as the model does, whatever is asked of them`,
    { timeout: seedTimeoutMs(240_000) },
    async (context) => {
      const seeds = begin();
      const failures: { readonly seed: number; readonly script: readonly Step[]; readonly says: string }[] = [];
      const all = seeds[Symbol.iterator]();
      const playOn = async (): Promise<void> => {
        for (let next = all.next(); next.done !== true; next = all.next()) {
          const seed = next.value;
          const script = drawScript(new Random(seed), scripts);
          const says = await failureOf(open(), script);
          if (says === undefined) continue;
          seeds.stop();
          failures.push({ seed, script, says });
        }
      };
      await run(Promise.all(Array.from({ length: atATime }, playOn)));
      seeds.tell(context, title);
      const [first] = failures;
      if (first !== undefined) assert.fail(await run(describe(open, first)));
    },
  );
}

let played = 0;

async function failureOf(store: LockStore, script: readonly Step[]): Promise<string | undefined> {
  played += 1;
  try {
    await new Player(store, `s${process.pid}-${played}`).play(script);
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

async function describe(
  open: () => LockStore,
  { seed, script, says }: { readonly seed: number; readonly script: readonly Step[]; readonly says: string },
): Promise<string> {
  const end = performance.now() + LONGEST_SHRINK_MS;
  const short = await shrink(
    script,
    async (one) => performance.now() < end && (await failureOf(open(), one)) !== undefined,
  );
  const last = (await failureOf(open(), short)) ?? says;
  return `Seed ${seed}: ${says}\n${again(seed)}. Shortened, it fails with: ${last}\n${describeScript(short)}`;
}
