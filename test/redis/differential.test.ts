/**
 * The memory engine and the Redis engine have one semantics: whatever they are asked, they answer the same. Random scripts of calls are
 * played on both. Run one alone, or more of them, with BATON_SEED and BATON_SCRIPTS.
 */
import { test } from "node:test";
import { inspect } from "node:util";
import { startRedisServer } from "../../servers/redis-server.ts";
import { memoryEngine } from "../../src/engines/memory/index.ts";
import { redisEngine } from "../../src/engines/redis/index.ts";
import { compare, type Difference, type Engines, shrink } from "../differential/compare.ts";
import { makeScript } from "../differential/script.ts";
import { Random } from "../simulation/random.ts";

const FIRST_SEED = Number(process.env["BATON_SEED"] ?? 1);
const SCRIPTS = Number(process.env["BATON_SCRIPTS"] ?? (process.env["BATON_SEED"] === undefined ? 60 : 1));
const STEPS = 100;

test(`memory and Redis answer the same to ${SCRIPTS} scripts of ${STEPS} calls`, async (context) => {
  const server = await startRedisServer({ settings: { appendonly: "no" } });
  const engines: Engines = [memoryEngine(), await redisEngine({ url: server.url })];
  context.after(async () => {
    await Promise.all(engines.map((engine) => engine.close()));
    await server.stop();
  });
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SCRIPTS; seed += 1) {
    // One after the other: calls for different queues do not wait for each other here, and the players number ids as they come.
    const script = makeScript(new Random(seed), STEPS).flatMap((burst) => burst.map((step) => [step]));
    const found = await compare(engines, script);
    if (found !== undefined) throw new Error(describe(seed, await shrink(engines, found)));
  }
});

function describe(seed: number, { script, answers: [memory, redis] }: Difference): string {
  const steps = script.map((burst) => `  ${JSON.stringify(burst)}`).join("\n");
  const show = (answer: unknown): string => inspect(answer, { depth: 9, breakLength: 120 });
  return (
    `The engines differ; BATON_SEED=${seed} plays it again. The shortest script that shows it:\n${steps}\n` +
    `memory answers ${show(memory)}\nredis answers ${show(redis)}`
  );
}
