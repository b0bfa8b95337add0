/** No two commands on one key, whatever happens to the worker. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { until } from "../kit/until.ts";
import { Desk, livesOn } from "./baton-command.ts";

/**
 * A command that will not go by itself, with a child of its own. It notes when it begins, and whether anything of the
 * run before it on the same key is still alive (a zombie is not: nobody has asked for its exit code yet).
 */
const STUBBORN = `
trap 'echo "term $$" >> events' TERM
for pid in $(cat group 2>/dev/null); do
  state=$(ps -o stat= -p "$pid")
  if [ -n "$state" ] && [ "\${state#Z}" = "$state" ]; then echo "overlap $$ with $pid" >> events; fi
done
sh -c 'trap "" TERM; while :; do sleep 0.05; done' &
echo "$$ $!" > group
echo "began $BATON_ATTEMPT $BATON_FENCE" >> events
if [ "$BATON_ATTEMPT" -ge 2 ]; then kill -9 $!; exit 0; fi
while :; do sleep 0.05; done
`;

/** Long enough that a machine that stands still for seconds, as virtual ones do, takes no lease away. */
const WORK = ["work", "cars", "--lease", "5s", "--backoff", "10ms"];

/** Loaded by every process of a command: the one that guards commands needs three leases to start. */
const SLOW_GUARD = `
import { basename, dirname } from "node:path";
const program = process.argv[1] ?? "";
if (basename(dirname(program)) === "guard") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 3_000);
`;

describe("one command per key", { concurrency: 4, timeout: 120_000 }, () => {
  for (const signal of ["SIGKILL", "SIGSTOP"] as const) {
    test(`a worker gets ${signal}: its command is gone before another takes the key`, async (context) => {
      const desk = new Desk(context);
      const script = desk.write("stubborn.sh", STUBBORN);
      await (await desk.queue("cars")).submit("car1", "");
      const first = desk.start([...WORK, "--", "sh", script]);
      await until(() => desk.read("events").includes("began 1"), "the first command");
      const second = desk.start([...WORK, "--until-empty", "--", "sh", script]);
      const orphans = desk.read("group").split(/\s+/).filter(Boolean).map(Number);
      assert.equal(orphans.filter(livesOn).length, 2);
      process.kill(first.pid, signal);
      const { code, stderr } = await second.finished;
      assert.equal(code, 0, stderr);
      const events = desk.lines("events");
      assert.deepEqual(
        events.filter((line) => line.startsWith("overlap")),
        [],
      );
      assert.equal(events.filter((line) => line.startsWith("began")).length, 2);
      assert.ok(
        events.some((line) => line.startsWith("term")),
        "it was asked to end before it was killed",
      );
      assert.deepEqual(orphans.filter(livesOn), []);
      if (signal === "SIGSTOP") {
        process.kill(first.pid, "SIGCONT");
        process.kill(first.pid, "SIGTERM");
      }
      await first.finished;
      assert.deepEqual(desk.lines("events"), events, "a worker that comes back does nothing more on the key");
    });
  }

  test("a guard that is slow to start costs no attempt", async (context) => {
    const desk = new Desk(context);
    const slow = desk.write("slow-guard.mjs", SLOW_GUARD);
    await (await desk.queue("cars")).submit("car1", "");
    const words = [
      "work",
      "cars",
      "--lease",
      "1s",
      "--until-empty",
      "--",
      "sh",
      "-c",
      'echo "$BATON_ATTEMPT" >> attempts',
    ];
    const { code, stderr } = await desk.run(words, { env: { NODE_OPTIONS: `--import=${slow}` } });
    assert.equal(code, 0, stderr);
    assert.deepEqual(desk.lines("attempts"), ["1"]);
  });

  test("a guard gets SIGKILL: the worker ends the command and tries again under a new one", async (context) => {
    const desk = new Desk(context);
    const script = desk.write("stubborn.sh", `echo $PPID > guard\necho hello >&2\n${STUBBORN}`);
    await (await desk.queue("cars")).submit("car1", "");
    const worker = desk.start([...WORK, "--until-empty", "--", "sh", script]);
    // Passed on by the guard, after it told the worker which process it is: a guard that dies before that leaves an
    // orphan that nobody knows of.
    let said = "";
    worker.child.stderr?.on("data", (text: string) => (said += text));
    await until(() => said.includes("hello"), "the first words of the command");
    await until(() => desk.read("events").includes("began 1"), "the first command");
    process.kill(Number(desk.read("guard")), "SIGKILL");
    const { code, stderr } = await worker.finished;
    assert.equal(code, 0, stderr);
    assert.match(stderr, /retry .*guards the commands has ended/);
    assert.deepEqual(
      desk.lines("events").filter((line) => line.startsWith("overlap")),
      [],
    );
  });
});
