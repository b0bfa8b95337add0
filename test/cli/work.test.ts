import assert from "node:assert/strict";
import { chmodSync } from "node:fs";
import { describe, test } from "node:test";
import { until } from "../kit/until.ts";
import { Desk } from "./baton-command.ts";

interface Event {
  readonly event: string;
  readonly key: string;
  readonly attempt: number;
  readonly failure?: { readonly message: string; readonly code?: string };
}

function eventsOf(stdout: string): Event[] {
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Event);
}

describe("baton work", { concurrency: 4, timeout: 120_000 }, () => {
  test("the command gets the payload and the item's variables; standard output is its own", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("cars");
    await queue.submit("car1", "paint", { id: "order-17", level: "high", type: "text/plain" });
    const script = `echo "$BATON_QUEUE $BATON_KEY $BATON_ID $BATON_LEVEL $BATON_ATTEMPT $BATON_FENCE: $(cat)"; echo aside >&2`;
    const { code, stdout, stderr } = await desk.run(["work", "cars", "--until-empty", "--", "sh", "-c", script]);
    assert.match(stdout, /^cars car1 order-17 high 1 \d+: paint\n$/);
    assert.match(stderr, /^baton: working on cars as .+: 1 waiting, 0 delayed, 0 running\. Ctrl-C stops\.\naside\n$/);
    assert.equal(code, 0);
    assert.equal((await queue.item("order-17"))?.state, "done");
  });

  test("says at its start what it waits for: work, a queue that goes on, or a queue that did not exist", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("orders");
    await queue.submit("o1", "ship", { delay: "1h" });
    await queue.pause();
    const said = async (name: string, flags: readonly string[], end: string): Promise<string> => {
      const worker = desk.start(["work", name, ...flags, "--", "true"]);
      let heard = "";
      for (const stream of [worker.child.stdout, worker.child.stderr])
        stream?.on("data", (text: string) => (heard += text));
      await until(() => heard.includes(end), end);
      process.kill(worker.pid, "SIGTERM");
      assert.equal((await worker.finished).code, 0);
      return heard;
    };
    const paused = await said("orders", [], "baton resume");
    assert.match(paused, /working on orders as .+: 0 waiting, 1 delayed, 0 running\. Ctrl-C stops\.\n/);
    assert.match(paused, /queue orders is paused: nothing begins until baton resume orders\n/);
    assert.doesNotMatch(paused, /made the queue/);
    const misspelt = await said("ordres", [], "baton queue delete");
    assert.match(misspelt, /working on ordres as .+: it is empty, and waits for items\./);
    assert.match(
      misspelt,
      /this made the queue: there was none of that name\. Did you mean orders\? If the name is a mistake: baton queue delete ordres\n/,
    );
    assert.doesNotMatch(await said("ordres", [], "waits for items"), /made the queue/, "it is there now");
    const lines = await said("orders2", ["--json"], `"queue-made"`);
    const [waits, made] = eventsOf(lines.slice(0, lines.indexOf("\n", lines.indexOf("queue-made"))));
    assert.deepEqual([waits?.event, made?.event], ["waiting", "queue-made"]);
    const quiet = await desk.run(["work", "other", "--quiet", "--until-empty", "--", "true"]);
    assert.equal(quiet.stderr, "");
  });

  test("a signal that comes while it starts ends it as asked", async (context) => {
    const desk = new Desk(context, "nats://127.0.0.1:9");
    const worker = desk.start(["work", "orders", "--wait-for-store", "1h", "--", "true"]);
    let heard = "";
    worker.child.stderr?.on("data", (text: string) => (heard += text));
    await until(() => heard.includes("Trouble connecting"), "word of a store that is away");
    process.kill(worker.pid, "SIGTERM");
    const { code, signal } = await worker.finished;
    assert.deepEqual([code, signal], [0, null]);
  });

  test("the waits between attempts: a longest one, or one that is always the same", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("q");
    await queue.submit("car1", "");
    const work = (...flags: string[]): string[] => ["work", "q", "--json", ...flags, "--", "false"];
    const wait = async (...flags: string[]): Promise<number> => {
      const worker = desk.start(work(...flags));
      let seen = "";
      worker.child.stdout?.on("data", (text: string) => (seen += text));
      await until(() => seen.includes(`"event":"retry"`), "a retry");
      process.kill(worker.pid, "SIGTERM");
      await worker.finished;
      const delayMs = /"delayMs":(\d+)/.exec(seen)?.[1];
      return Number(delayMs);
    };
    assert.equal(await wait("--retry-delay", "250ms", "--attempts", "9"), 250);
    assert.ok((await wait("--backoff", "1s", "--max-backoff", "1s", "--attempts", "9")) <= 1_000);
    const contradictions: readonly (readonly [string[], RegExp])[] = [
      [["--backoff", "1h", "--max-backoff", "5m"], /--backoff is longer than --max-backoff/],
      [["--retry-delay", "10s", "--backoff", "1s"], /leave out --backoff and --max-backoff/],
      [["--retry-delay", "10s", "--max-backoff", "1s"], /leave out --backoff and --max-backoff/],
    ];
    for (const [flags, message] of contradictions) {
      const { code, stderr } = await desk.run(work(...flags));
      assert.equal(code, 1);
      assert.match(stderr, message);
    }
  });

  test("exit codes decide: 65 and fatal ones are dead letters, everything else is tried again", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("q");
    for (const key of ["0", "65", "66", "75", "signal"]) await queue.submit(key, "");
    const script = `echo "trouble with $BATON_KEY" >&2; if [ "$BATON_KEY" = signal ]; then kill -9 $$; fi; exit "$BATON_KEY"`;
    const words = [
      "work",
      "q",
      "--attempts",
      "2",
      "--backoff",
      "1ms",
      "--fatal-codes",
      "66,67",
      "--until-empty",
      "--json",
    ];
    const { code, stdout, stderr } = await desk.run([...words, "--", "sh", "-c", `echo noise; ${script}`]);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /noise/, "with --json the command's output does not get between the lines");
    const events = eventsOf(stdout);
    const story = (key: string): string[] => events.filter((one) => one.key === key).map(({ event }) => event);
    assert.deepEqual(story("0"), ["started", "done"]);
    assert.deepEqual(story("65"), ["started", "dead"]);
    assert.deepEqual(story("66"), ["started", "dead"]);
    assert.deepEqual(story("75"), ["started", "retry", "started", "dead"]);
    assert.deepEqual(story("signal"), ["started", "retry", "started", "dead"]);
    assert.equal(events.at(-1)?.event, "stopped");
    const failure = (key: string): object | undefined => events.findLast((one) => one.key === key)?.failure;
    assert.deepEqual(failure("75"), {
      code: "EXIT_75",
      message: "The command exited with code 75. It said:\ntrouble with 75",
    });
    assert.deepEqual(failure("signal"), {
      code: "KILLED",
      message: "The command was killed by SIGKILL. It said:\ntrouble with signal",
    });
  });

  test("a command that cannot be run is an error at once, and no item pays for it", async (context) => {
    const desk = new Desk(context);
    desk.write("not-executable", "echo hello");
    const queue = await desk.queue("q");
    await queue.submit("key", "");
    for (const [command, expected] of [
      ["no-such-command", /command: expected a program that is found in \$PATH/],
      ["./not-executable", /command: expected a file that exists and may be run/],
    ] as const) {
      const { code, stderr } = await desk.run(["work", "q", "--until-empty", "--", command]);
      assert.equal(code, 1);
      assert.match(stderr, expected);
    }
    assert.equal((await queue.status()).waiting, 1);
  });

  test("a command that cannot be started any more is tried again, and the failure says why", async (context) => {
    const desk = new Desk(context);
    await desk.run(["submit", "q", "key"]);
    const script = desk.write("once", '#!/bin/sh\nrm "$0"\nexit 1\n');
    chmodSync(script, 0o755);
    const words = ["work", "q", "--attempts", "2", "--backoff", "1ms", "--until-empty", "--json", "--", script];
    const events = eventsOf((await desk.run(words)).stdout);
    assert.deepEqual(
      events.map(({ event }) => event),
      ["waiting", "started", "retry", "started", "dead", "stopped"],
    );
    assert.match(events[4]?.failure?.message ?? "", /once could not be started: .*\(ENOENT\)/);
  });

  test("the failure keeps the end of a long standard error, and a payload may be left unread", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("q");
    await queue.submit("key", "x".repeat(200_000));
    const script = `i=0; while [ $i -lt 3000 ]; do echo "line $i" >&2; i=$((i + 1)); done; exit 65`;
    await desk.run(["work", "q", "--until-empty", "--", "sh", "-c", script]);
    const [letter] = await queue.dead();
    assert.match(letter?.failure.message ?? "", /^The command exited with code 65\. It said:\n[^]*line 2999$/);
    assert.ok((letter?.failure.message.length ?? 0) > 1_500);
  });

  test("different keys run at the same time, one key one after the other", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("q");
    for (const key of ["a", "b", "a"]) await queue.submit(key, "");
    // Each waits for the other: they can only end if they run together.
    const script = `
    if mkdir "held-$BATON_KEY"; then :; else echo overlap >> overlaps; fi
    touch "seen-$BATON_KEY"
    while [ ! -e seen-a ] || [ ! -e seen-b ]; do sleep 0.1; done
    rmdir "held-$BATON_KEY"`;
    const { code, stderr } = await desk.run([
      "work",
      "q",
      "--concurrency",
      "3",
      "--until-empty",
      "--",
      "sh",
      "-c",
      script,
    ]);
    assert.equal(code, 0, stderr);
    assert.equal(desk.read("overlaps"), "");
  });

  test("a run that takes too long is ended and tried again", async (context) => {
    const desk = new Desk(context);
    await (await desk.queue("q")).submit("key", "");
    const words = ["work", "q", "--timeout", "300ms", "--backoff", "1ms", "--until-empty", "--json"];
    const script = `[ "$BATON_ATTEMPT" = 2 ] || sleep 60`;
    const events = eventsOf((await desk.run([...words, "--", "sh", "-c", script])).stdout);
    assert.deepEqual(
      events.map(({ event }) => event),
      ["waiting", "started", "retry", "started", "done", "stopped"],
    );
    assert.equal(events[2]?.failure?.code, "HANDLER_TIMEOUT");
  });

  test("a cancelled item's command is ended, and the item does not come again", async (context) => {
    const desk = new Desk(context);
    await (await desk.queue("q")).submit("key", "", { id: "order-17" });
    const worker = desk.start([
      "work",
      "q",
      "--lease",
      "1s",
      "--until-empty",
      "--json",
      "--",
      "sh",
      "-c",
      "touch began; sleep 60",
    ]);
    await until(() => desk.list().includes("began"), "the command");
    const { stdout } = await desk.run(["cancel", "q", "order-17"]);
    assert.match(stdout, /^requested order-17/);
    const events = eventsOf((await worker.finished).stdout);
    assert.deepEqual(
      events.map(({ event }) => event),
      ["waiting", "started", "cancelling", "cancelled", "stopped"],
    );
  });

  test("what a command leaves running is ended with it", async (context) => {
    const desk = new Desk(context);
    await (await desk.queue("q")).submit("key", "");
    const script = `sh -c 'trap "touch asked; exit" TERM; touch ready; while :; do sleep 0.1; done' & while [ ! -e ready ]; do sleep 0.1; done`;
    const { code } = await desk.run(["work", "q", "--until-empty", "--", "sh", "-c", script]);
    assert.equal(code, 0);
    assert.ok(desk.list().includes("asked"));
  });
});
