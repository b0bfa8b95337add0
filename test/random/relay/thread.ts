/**
 * A thread of its own, whose time is virtual. The test runner traces every promise of its own thread, which takes longer
 * than the relays do.
 */
import { parentPort } from "node:worker_threads";
import { shrink } from "../../kit/shrink.ts";
import { drawPlan, type Plan } from "./plan.ts";
import { VirtualProcess } from "./virtual-process.ts";
import { World } from "./world.ts";

const virtual = VirtualProcess.install();

async function play(plan: Plan): Promise<readonly string[]> {
  virtual.startAnew();
  return await new World(plan, virtual).play();
}

/** Undefined: all was well. Otherwise what went wrong, and the shortest script that shows it. */
async function playSeed(seed: number): Promise<string | undefined> {
  const plan = drawPlan(seed);
  const [first] = await play(plan);
  if (first === undefined) return undefined;
  const script = await shrink(plan.script, async (shorter) => (await play({ ...plan, script: shorter })).length > 0);
  const [problem = first] = await play({ ...plan, script });
  const { sources, script: _whole, ...settings } = plan;
  return [problem, ...[...sources, settings, ...script].map((one) => JSON.stringify(one))].join("\n");
}

parentPort?.on("message", (seed: number) => {
  void playSeed(seed).then((problem) => parentPort?.postMessage(problem ?? ""));
});
