/**
 * The simulated JetStream answers as the real one does: random scripts are played on both. Run one alone, or more of
 * them, with BATON_SEED and BATON_SEEDS.
 */
import { test, type TestContext } from "node:test";
import { startNatsServer } from "../servers/nats-server.ts";
import { openConnection, wireOf } from "../src/engines/nats/connection.ts";
import { assertAlike, firstDifference, shortestDifference, type Stages } from "./jetstream/compare.ts";
import { realStage, simulatedStage } from "./jetstream/play.ts";
import { again, Seeds, seedTimeoutMs } from "./kit/seeds.ts";
import { purgeScript } from "./jetstream/purge-script.ts";
import { makeScript } from "./jetstream/script.ts";
import { timedScript } from "./jetstream/timed-script.ts";
import { Random } from "./kit/random.ts";

const BOUNDS = { seeds: 100, longestMs: 60_000 };
const STEPS = 60;
/** While one answers, the next is asked. */
const SERVERS = 4;

test("the real and the simulated JetStream do the same by themselves", { timeout: 60_000 }, async (context) => {
  assertAlike(await firstDifference(await bothStages(context), timedScript()), "so it does every time");
});

test("the real and the simulated JetStream show the same floor behind a purge that left something below it", async (context) => {
  assertAlike(await firstDifference(await bothStages(context), purgeScript()), "so it does every time");
});

test(
  `the real and the simulated JetStream answer the same to random scripts of ${STEPS} steps`,
  { timeout: seedTimeoutMs(120_000) },
  async (context) => {
    const seeds = new Seeds(BOUNDS);
    const drawn = seeds[Symbol.iterator]();
    const play = async (): Promise<void> => {
      const stages = await bothStages(context);
      for (let next = drawn.next(); next.done !== true; next = drawn.next()) {
        const difference = await shortestDifference(stages, makeScript(new Random(next.value), STEPS));
        assertAlike(difference, again(next.value));
      }
    };
    // None is stopped while another is being asked.
    const ended = await Promise.allSettled(
      Array.from({ length: SERVERS }, () =>
        play().catch((error: unknown) => {
          seeds.stop();
          throw error;
        }),
      ),
    );
    seeds.tell(context, "scripts for both JetStreams");
    for (const end of ended) if (end.status === "rejected") throw end.reason as Error;
  },
);

async function bothStages(context: TestContext): Promise<Stages> {
  const server = await startNatsServer();
  const wire = wireOf(await openConnection({ servers: [server.url] }), true);
  context.after(async () => {
    await wire.close();
    await server.stop();
  });
  return { real: realStage(wire), simulated: simulatedStage() };
}
