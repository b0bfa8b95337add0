/**
 * Random arrivals, failures, delays and room, by seed: whatever happens, no more is taken than fits, nothing is lost,
 * nothing is acknowledged that was not handled, and the relay comes to rest.
 */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { Fatal, RetryLater } from "../../../src/index.ts";
import { Random } from "../../kit/random.ts";
import { Seeds, seedTimeoutMs } from "../../kit/seeds.ts";
import { until } from "../../kit/until.ts";
import { ScriptedSource } from "../../relay/core/scripted-source.ts";
import { fromSource, play, route, settingsOf, toFunction } from "../../relay/core/stage.ts";

const MESSAGES = 60;

async function playLoad(context: TestContext, seed: number): Promise<void> {
  const random = new Random(seed);
  const chance = (share: number): boolean => random.chance(share);
  const upTo = (highest: number): number => random.between(0, highest);
  const sources = Array.from({ length: 1 + upTo(3) }, (_, index) => new ScriptedSource(`s${index}`));
  const concurrency = 1 + upTo(5);
  for (const source of sources) {
    source.before = async () => {
      if (chance(0.3)) await wait(upTo(5));
      if (chance(0.05)) throw new Error("the source is away");
    };
  }
  let running = 0;
  let most = 0;
  const handled = new Set<string>();
  const run = async ({ id }: { readonly id: string }): Promise<void> => {
    running += 1;
    most = Math.max(most, running);
    if (chance(0.7)) await wait(upTo(4));
    running -= 1;
    if (id.endsWith("x")) throw new Fatal("hopeless");
    if (chance(0.1)) throw new RetryLater(0, "again");
    handled.add(id);
  };
  const retry = { attempts: 1_000, backoffMs: 0, maxBackoffMs: 0 };
  const choice = chance(0.5) ? "strict" : "weighted";
  await play(
    context,
    settingsOf(
      route(
        sources.map((source) => fromSource(source, { retry, weight: 1 + upTo(9) })),
        toFunction(run),
        { concurrency, choice },
      ),
    ),
  );
  const sent: string[] = [];
  for (let index = 0; index < MESSAGES; index += 1) {
    const source = sources[upTo(sources.length - 1)];
    const id = `m${index}${chance(0.1) ? "x" : ""}`;
    sent.push(id);
    source?.put(id, { key: `k${upTo(5)}` });
    if (chance(0.2)) await wait(upTo(10));
  }
  const ends = (): string[] => sources.flatMap(({ told }) => told.filter((one) => !one.startsWith("back")));
  await until(() => ends().length === MESSAGES, "every message to end");
  const expected = sent.map((id) => (id.endsWith("x") ? `buried ${id}: hopeless` : `acknowledged ${id}`));
  assert.deepEqual(ends().toSorted(), expected.toSorted());
  for (const id of sent) if (!id.endsWith("x")) assert.ok(handled.has(id));
  assert.ok(most <= concurrency, `${most} at a time, for ${concurrency} slots`);
  const inHand = sources.reduce((sum, source) => sum + source.inHand, 0);
  assert.equal(inHand, 0);
  for (const source of sources) {
    const bound = concurrency + sources.length - 1;
    assert.ok(source.mostInHand <= bound, `${source.mostInHand} in hand of ${source.name}, for ${concurrency} slots`);
  }
}

describe("a relay under random load", { timeout: seedTimeoutMs(120_000) }, () => {
  test("takes no more than fits, and loses nothing", async (context) => {
    const seeds = new Seeds({ seeds: 12, longestMs: 20_000 });
    const lane = async (): Promise<void> => {
      // Each in a test of its own: its relay ends with it.
      for (const seed of seeds) await context.test(`BATON_SEED=${seed}`, (own) => playLoad(own, seed));
    };
    await Promise.all([lane(), lane(), lane(), lane()]);
    seeds.tell(context, "random loads");
  });
});
