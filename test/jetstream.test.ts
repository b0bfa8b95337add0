/**
 * The simulated JetStream answers as the real one does: random scripts are played on both. Run one alone, or more of
 * them, with BATON_SEED and BATON_SCRIPTS.
 */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { startNatsServer } from "../servers/nats-server.ts";
import { openConnection, wireOf } from "../src/engines/nats/connection.ts";
import { type Answer, Player, realStage, simulatedStage, type Stage } from "./jetstream/play.ts";
import { makeScript, setUp, type Step, tearDown } from "./jetstream/script.ts";
import { timedScript } from "./jetstream/timed-script.ts";
import { Random } from "./simulation/random.ts";

const FIRST_SEED = Number(process.env["BATON_SEED"] ?? 1);
const SCRIPTS = Number(process.env["BATON_SCRIPTS"] ?? (process.env["BATON_SEED"] === undefined ? 100 : 1));
const STEPS = 60;
/** While one answers, the next is asked. */
const SERVERS = 4;
/** The real one tells its consumers of new messages after it has acknowledged them. */
const LOOKS = 20;
const LOOK_MS = 5;

test("the real and the simulated JetStream do the same by themselves", { timeout: 60_000 }, async (context) => {
  await compare("", await bothStages(context), timedScript());
});

test(
  `the real and the simulated JetStream answer the same to ${SCRIPTS} scripts of ${STEPS} steps`,
  { timeout: 120_000 },
  async (context) => {
    const seeds = Array.from({ length: SCRIPTS }, (_, place) => FIRST_SEED + place);
    const play = async (): Promise<void> => {
      const stages = await bothStages(context);
      for (let seed = seeds.shift(); seed !== undefined; seed = seeds.shift()) {
        const script = [...setUp(), ...makeScript(new Random(seed), STEPS), ...tearDown()];
        await compare(`BATON_SEED=${seed} plays it again`, stages, script);
      }
    };
    // None is stopped while another is being asked.
    const ended = await Promise.allSettled(
      Array.from({ length: SERVERS }, () =>
        play().catch((error: unknown) => {
          seeds.length = 0;
          throw error;
        }),
      ),
    );
    for (const end of ended) if (end.status === "rejected") throw end.reason as Error;
  },
);

async function bothStages(context: TestContext): Promise<readonly [Stage, Stage]> {
  const server = await startNatsServer();
  const wire = wireOf(await openConnection({ servers: [server.url] }), true);
  context.after(async () => {
    await wire.close();
    await server.stop();
  });
  return [realStage(wire), simulatedStage()];
}

async function compare(
  hint: string,
  [real, simulated]: readonly [Stage, Stage],
  script: readonly Step[],
): Promise<void> {
  const players = [new Player(real, "real"), new Player(simulated, "simulated")] as const;
  const played: Step[] = [];
  for (const step of script) {
    played.push(step);
    const expected = await players[1].play(step);
    let actual: Answer = await players[0].play(step);
    for (let look = 1; look < LOOKS && isLook(step) && !isDeepStrictEqual(actual, expected); look += 1) {
      await sleep(LOOK_MS);
      actual = await players[0].play(step);
    }
    if (isDeepStrictEqual(actual, expected)) continue;
    const story = played.map((each) => `  ${JSON.stringify(each)}`).join("\n");
    assert.deepEqual(expected, actual, `The servers differ; ${hint}:\n${story}\n${diff(expected, actual)}`);
  }
}

function isLook(step: Step): boolean {
  return step.kind === "api" && step.subject.startsWith("CONSUMER.INFO");
}

function diff(simulated: Answer, real: Answer): string {
  try {
    assert.deepEqual(simulated, real);
    return "";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
