/**
 * The simulation of the NATS engine from the command line:
 *
 *     node test/nats-simulation/main.ts [--seeds N] [--from S] [--minutes M] [--threads T] [--all] [--planted NAME]
 *     node test/nats-simulation/main.ts --seed S [--planted NAME]         one seed, with its whole trace
 */
import { performance } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { countImmediates } from "../simulation/turns.ts";
import { drawPlan } from "./plan.ts";
import { PLANTED_BUGS } from "./planted.ts";
import { runInThreads } from "./pool.ts";
import { briefly, describeFailure, describeTotals } from "./report.ts";
import { traceSeed } from "./run.ts";

const { values } = parseArgs({
  options: {
    seeds: { type: "string" },
    from: { type: "string", default: "1" },
    seed: { type: "string" },
    minutes: { type: "string" },
    threads: { type: "string", default: "1" },
    planted: { type: "string" },
    all: { type: "boolean", default: false },
  },
});
const bug = PLANTED_BUGS.find(({ name }) => values.planted !== undefined && name.includes(values.planted));

if (values.seed === undefined) await runMany();
else await runOne(Number(values.seed));

async function runOne(seed: number): Promise<void> {
  countImmediates();
  const { lines, result } = await traceSeed(seed, bug);
  const { deeds: _, ...plan } = drawPlan(seed);
  console.log(JSON.stringify(plan));
  for (const line of lines) console.log(line);
  for (const { guarantee, at, key, says } of result.failure?.violations ?? [])
    console.log(`VIOLATION ${guarantee} at ${at} ms, key ${key ?? "(all)"}: ${says}`);
  process.exit(result.failure === undefined ? 0 : 1);
}

async function runMany(): Promise<void> {
  const begun = performance.now();
  const limitMs = values.minutes === undefined ? Infinity : Number(values.minutes) * 60_000;
  const seeds = values.seeds === undefined ? (values.minutes === undefined ? 1_000 : Infinity) : Number(values.seeds);
  const total = await runInThreads({
    from: Number(values.from),
    seeds,
    threads: Number(values.threads),
    ...(bug === undefined ? {} : { planted: bug.name }),
    goOn: ({ failures }) => (values.all || failures.length === 0) && performance.now() - begun < limitMs,
  });
  for (const failure of total.failures) console.log(values.all ? briefly(failure) : describeFailure(failure));
  console.log(describeTotals(total, performance.now() - begun));
  process.exitCode = total.failures.length === 0 ? 0 : 1;
}
