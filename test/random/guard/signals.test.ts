/** Signals to a worker in any order, one worker after the other; and what an end of a command means, whatever it says. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { CommandEnd } from "../../../src/cli/guard/messages.ts";
import { BAD_DATA, failureOf } from "../../../src/cli/work/command-failure.ts";
import { StopOnSignals } from "../../../src/cli/work/stop-on-signals.ts";
import { Random } from "../../kit/random.ts";
import { again, Seeds, seedTimeoutMs } from "../../kit/seeds.ts";
import { shrink } from "../../kit/shrink.ts";

type Step = NodeJS.Signals | "starts" | "ends" | "next worker";

const SIGNALS: readonly NodeJS.Signals[] = ["SIGINT", "SIGTERM", "SIGHUP"];
/** The store keeps 2,000 bytes of a message. */
const LONGEST_BYTES = 2_000;

function playSignals(steps: readonly Step[], graceMs: number): string | undefined {
  const before = SIGNALS.map((signal) => process.listenerCount(signal));
  let did: string[] = [];
  const begin = (): StopOnSignals =>
    new StopOnSignals({
      graceMs,
      say: (text) => did.push(text.slice(0, text.indexOf(":"))),
      leave: () => did.push("leave"),
    });
  let worker = begin();
  let runs = false;
  let heard = 0;
  try {
    for (const step of steps) {
      did = [];
      if (step === "next worker") {
        worker[Symbol.dispose]();
        worker = begin();
        runs = false;
        heard = 0;
        continue;
      }
      if (step === "starts" || step === "ends") {
        runs = step === "starts";
        if (runs) worker.started({ stop: (ms) => did.push(`stop ${ms}`), kill: () => did.push("kill") });
        else worker.ended();
        continue;
      }
      // As from the system, without the system's part.
      process.emit(step, step);
      if (runs) heard += 1;
      const stops = heard === 1 ? [step, `stop ${graceMs}`] : heard === 2 ? [step, "stop 0"] : ["kill"];
      const expected = runs ? stops : ["leave"];
      if (did.join() !== expected.join())
        return `Signal ${heard} did: ${did.join(", ")}. It should: ${expected.join(", ")}.`;
    }
  } finally {
    worker[Symbol.dispose]();
  }
  const after = SIGNALS.map((signal) => process.listenerCount(signal));
  return after.join() === before.join() ? undefined : "It goes on listening to signals after its worker.";
}

function drawEnd(random: Random): CommandEnd {
  const said = random.pick(["", "no", "ä€😀".repeat(random.between(1, 400)), "x".repeat(random.between(1_700, 2_100))]);
  switch (random.pick(["exited", "exited", "killed", "not-started"] as const)) {
    case "exited":
      return { type: "exited", code: random.pick([0, 1, 3, BAD_DATA, 75, 255]), stderr: said };
    case "killed":
      return { type: "killed", signal: "SIGKILL", stderr: said };
    case "not-started":
      return { type: "not-started", code: random.pick(["ENOENT", "EACCES", "LEASE_OVER"]), message: "because" };
  }
}

function playEnd(random: Random): string | undefined {
  const end = drawEnd(random);
  const fatalCodes = new Set([random.pick([1, 3, 75])]);
  const failure = failureOf(end, "paint", fatalCodes);
  if (end.type === "exited" && end.code === 0)
    return failure === undefined ? undefined : "What exited with 0 has failed.";
  if (failure === undefined) return `Nothing is wrong with ${JSON.stringify(end)}.`;
  const isFatal = end.type === "exited" && (end.code === BAD_DATA || fatalCodes.has(end.code));
  if (failure.fatal !== isFatal) return `${JSON.stringify(end)} is ${failure.fatal ? "" : "not "}fatal.`;
  if (Buffer.byteLength(failure.message) > LONGEST_BYTES)
    return `${Buffer.byteLength(failure.message)} bytes are more than the store keeps.`;
  if (failure.message.includes("\uFFFD")) return "A character was cut in two.";
  const said = end.type === "not-started" ? "" : end.stderr;
  const told = failure.message.slice(failure.message.indexOf("\n") + 1);
  if (said !== "" && !(told !== "" && said.endsWith(told))) return "It does not tell the end of what the command said.";
  if (said !== "" && said.length < 400 && told !== said) return "It does not tell all that the command said.";
  const code = end.type === "exited" ? `EXIT_${end.code}` : end.type === "killed" ? "KILLED" : end.code;
  return failure.code === code ? undefined : `Its code is ${failure.code}, and should be ${code}.`;
}

describe("a worker of commands", { timeout: seedTimeoutMs(30_000) }, () => {
  test("stops, hurries and kills as it is told, the next one as the first", async (context) => {
    const seeds = new Seeds({ seeds: 100, longestMs: 500 });
    for (const seed of seeds) {
      const random = new Random(seed);
      const steps = Array.from({ length: random.between(1, 12) }, () =>
        random.pick<Step>([...SIGNALS, ...SIGNALS, "starts", "ends", "next worker"]),
      );
      const graceMs = random.between(1, 60_000);
      if (playSignals(steps, graceMs) === undefined) continue;
      const script = await shrink(steps, async (shorter) => playSignals(shorter, graceMs) !== undefined);
      assert.fail(`${String(playSignals(script, graceMs))}\n${again(seed)}\n${script.join(", ")}`);
    }
    seeds.tell(context, "signals");
  });

  test("tells why a command has failed", (context) => {
    const seeds = new Seeds({ seeds: 400, longestMs: 500 });
    for (const seed of seeds) {
      const problem = playEnd(new Random(seed));
      if (problem !== undefined) assert.fail(`${problem}\n${again(seed)}`);
    }
    seeds.tell(context, "ends of commands");
  });
});
