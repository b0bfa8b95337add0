/** Two shells, one lock. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startNatsServer } from "../../servers/nats-server.ts";
import { Lateness } from "../kit/lateness.ts";
import { until } from "../kit/until.ts";
import { Desk, type Finished, livesOn, type Started } from "./baton-command.ts";
import { lockStores } from "./lock-stores.ts";

/** Longer than any test waits: what is free before was freed, and did not run out. */
const LONG = ["--lease", "10m"];
const SHORT = ["--lease", "2s"];
const SHORT_MS = 2_000;

/** Notes that it began, under which fence, and goes on until a file says so. */
const HOLD = `echo "began $BATON_LOCK $BATON_FENCE" >> events; while [ ! -e go ]; do sleep 0.1; done; echo ended >> events`;

async function holding(desk: Desk, name: string, flags: readonly string[]): Promise<Started> {
  const started = desk.start(["lock", name, ...flags, "--", "sh", "-c", HOLD]);
  await until(() => desk.read("events").includes(`began ${name}`), "the holder");
  return started;
}

/** A second shell that waits, and is in line. */
async function waiting(desk: Desk, name: string, words: readonly string[]): Promise<Started> {
  const started = desk.start(["lock", name, ...words]);
  let said = "";
  started.child.stderr?.on("data", (text: string) => (said += text));
  await until(() => said.includes(`waiting for lock ${name}`), "the waiter's words");
  return started;
}

async function refusal(desk: Desk, name: string, flags: readonly string[]): Promise<Finished> {
  return await desk.run(["lock", name, ...flags, "--", "sh", "-c", "echo ran >> wrong"]);
}

describe("baton lock", { concurrency: 4, timeout: 180_000 }, () => {
  for (const store of lockStores()) {
    test(`${store.name}: the second is refused, or waits until the first has ended`, async (context) => {
      const desk = store.desk(context);
      const first = await holding(desk, "a", LONG);
      for (const flags of [["--no-wait"], ["--wait", "200ms"]]) {
        const { code, stderr } = await refusal(desk, "a", [...LONG, ...flags]);
        assert.equal(code, 3, stderr);
        assert.match(stderr, new RegExp(`Lock "a" was not acquired: "[^"]*:${first.pid}" has held it since 2`));
      }
      const second = await waiting(desk, "a", [...LONG, "--", "sh", "-c", `echo "next $BATON_FENCE" >> events`]);
      desk.write("go", "");
      assert.equal((await first.finished).code, 0);
      const { code, stderr } = await second.finished;
      assert.equal(code, 0, stderr);
      assert.match(stderr, new RegExp(`waiting for lock a, held by [^ ]*:${first.pid} for `));
      const [, began = "", next = ""] = /began a (\d+)\nended\nnext (\d+)\n/.exec(desk.read("events")) ?? [];
      assert.ok(Number(next) > Number(began), desk.read("events"));
      assert.equal(desk.read("wrong"), "");
    });

    test(`${store.name}: Ctrl-C frees the lock at once`, async (context) => {
      const desk = store.desk(context);
      const first = await holding(desk, "b", LONG);
      const second = await waiting(desk, "b", [...LONG, "--", "sh", "-c", "echo next >> events"]);
      process.kill(first.pid, "SIGINT");
      assert.equal((await first.finished).code, 130);
      assert.equal((await second.finished).code, 0);
      assert.equal(desk.lines("events").at(-1), "next");
    });

    for (const delay of [0, 1_500]) {
      test(`${store.name}: SIGKILL frees the lock after its lease${delay === 0 ? "" : " and the delay"}`, async (context) => {
        const desk = store.desk(context);
        using lateness = new Lateness();
        const name = `d${delay}`;
        const flags = [...SHORT, "--delay-after-loss", String(delay)];
        const first = desk.start(["lock", name, ...flags, "--", "sh", "-c", `echo $$ > pid; ${HOLD}`]);
        await until(() => desk.read("events").includes("began"), "the holder");
        const second = await waiting(desk, name, [...flags, "--", "sh", "-c", "echo next >> events"]);
        process.kill(first.pid, "SIGKILL");
        const killedAt = performance.now();
        const { code, stderr } = await second.finished;
        const tookMs = performance.now() - killedAt;
        assert.equal(code, 0, stderr);
        // The last sign of life was at most a third of the lease ago, and as much more as the machine is late.
        const soonestMs = (SHORT_MS * 2) / 3 - 100 - lateness.addedMs;
        assert.ok(tookMs > Math.max(0, soonestMs) + delay, `taken over after ${tookMs} ms`);
        context.diagnostic(`taken over after ${Math.round(tookMs)} ms`);
        assert.equal(livesOn(Number(desk.read("pid"))), false, "the guard has ended the command");
      });
    }

    test(`${store.name}: a holder that was halted loses the lock, its command is ended, and it exits with 4`, async (context) => {
      const desk = store.desk(context);
      const first = desk.start([
        "lock",
        "e",
        ...SHORT,
        "--",
        "sh",
        "-c",
        `trap 'echo term >> events; exit' TERM; ${HOLD}`,
      ]);
      await until(() => desk.read("events").includes("began"), "the holder");
      const second = await waiting(desk, "e", [...SHORT, "--", "sh", "-c", "echo next >> events"]);
      process.kill(first.pid, "SIGSTOP");
      assert.equal((await second.finished).code, 0);
      process.kill(first.pid, "SIGCONT");
      const { code, stderr } = await first.finished;
      assert.equal(code, 4, stderr);
      assert.match(stderr, /Lock "e" \(fence \d+\) is lost/);
      assert.deepEqual(desk.lines("events").slice(1), ["term", "next"]);
    });
  }
});

describe("a lock that several wait for", { concurrency: 4, timeout: 120_000 }, () => {
  test("Ctrl-C gives up waiting, and leaves no trace", async (context) => {
    const desk = new Desk(context);
    const first = await holding(desk, "c", LONG);
    const second = await waiting(desk, "c", [...LONG, "--", "sh", "-c", "echo ran >> wrong"]);
    process.kill(second.pid, "SIGINT");
    assert.equal((await second.finished).code, 130);
    const report = (await (await desk.baton()).locks()).find(({ name }) => name === "c");
    assert.deepEqual({ held: report?.holders.length, waiting: report?.waiting }, { held: 1, waiting: 0 });
    desk.write("go", "");
    assert.equal((await first.finished).code, 0);
    assert.deepEqual(
      (await (await desk.baton()).locks()).filter(({ name }) => name === "c"),
      [],
    );
    assert.equal(desk.read("wrong"), "");
  });

  test("as many as there are slots hold it at a time", async (context) => {
    const desk = new Desk(context);
    const flags = [...LONG, "--slots", "2"];
    const first = desk.start(["lock", "f", ...flags, "--", "sh", "-c", HOLD]);
    const second = desk.start(["lock", "f", ...flags, "--data", "the second", "--", "sh", "-c", HOLD]);
    await until(() => desk.lines("events").length === 2, "two holders");
    assert.equal((await refusal(desk, "f", [...flags, "--no-wait"])).code, 3);
    const { stdout } = await desk.run(["locks"]);
    assert.equal(stdout.match(/^f +\S+:\d+ +\S+ ago +\d+ +2 +0 /gm)?.length, 2, stdout);
    assert.match(stdout, /the second$/m);
    desk.write("go", "");
    assert.deepEqual([(await first.finished).code, (await second.finished).code], [0, 0]);
  });
});

describe("a command under a lock", { concurrency: 4, timeout: 120_000 }, () => {
  test("has the input, the output and the exit code of its caller's", async (context) => {
    const desk = new Desk(context);
    const script = `echo "$BATON_LOCK $BATON_FENCE $(cat)"; echo oops >&2; exit 7`;
    const { code, stdout, stderr } = await desk.run(["lock", "a b", "--", "sh", "-c", script], { input: "hello" });
    assert.deepEqual(
      { code, stdout: stdout.replace(/\d+/, "N"), stderr },
      { code: 7, stdout: "a b N hello\n", stderr: "oops\n" },
    );
    assert.equal((await desk.run(["lock", "a", "--", "sh", "-c", "kill -9 $$"])).code, 137);
  });

  test("gets the signals that were sent to baton lock", async (context) => {
    const desk = new Desk(context);
    const script = `trap 'echo usr1 >> events' USR1; trap 'exit 5' TERM; ${HOLD}`;
    const holder = desk.start(["lock", "a", "--", "sh", "-c", script]);
    await until(() => desk.read("events").includes("began"), "the command");
    process.kill(holder.pid, "SIGUSR1");
    await until(() => desk.read("events").includes("usr1"), "the first signal");
    process.kill(holder.pid, "SIGTERM");
    assert.equal((await holder.finished).code, 5);
    assert.deepEqual(await desk.json(["locks"]), []);
  });

  test("that ignores SIGTERM gets SIGKILL 5 s after the lock was lost", async (context) => {
    const desk = new Desk(context);
    using lateness = new Lateness();
    const script = `trap 'date +%s%N >> term' TERM; echo $$ > pid; echo began >> events; while :; do sleep 0.1; done`;
    // The delay leaves the whole time: nobody else can have the lock before.
    const holder = desk.start(["lock", "a", ...SHORT, "--delay-after-loss", "10s", "--", "sh", "-c", script]);
    await until(() => desk.read("events").includes("began"), "the command");
    process.kill(holder.pid, "SIGSTOP");
    await until(() => desk.read("term") !== "", "SIGTERM");
    const pid = Number(desk.read("pid"));
    await until(() => !livesOn(pid), "SIGKILL");
    const tookMs = Date.now() - Number(desk.lines("term")[0]) / 1e6;
    // A shell hears of a signal when its sleep is over, and takes its time to say so.
    assert.ok(tookMs > 4_000 - lateness.addedMs, `killed after ${tookMs} ms: the command had no time to end by itself`);
    lateness.assertWithin(tookMs, 8_000, "SIGKILL after SIGTERM");
    process.kill(holder.pid, "SIGCONT");
    assert.equal((await holder.finished).code, 4);
  });

  test("that took the lock from the store itself is told of the loss, with 4", async (context) => {
    const desk = new Desk(context);
    const forget = `new (require("node:sqlite").DatabaseSync)("work.db").exec("DELETE FROM cell")`;
    const { code, stdout, stderr } = await desk.run(["lock", "a", "--json", "--", process.execPath, "-e", forget]);
    assert.equal(code, 4, stderr);
    assert.deepEqual(stdout.match(/"event":"\w+"/g), ['"event":"acquired"', '"event":"lost"']);
  });

  test("--json tells what becomes of the lock", async (context) => {
    const desk = new Desk(context);
    const done = await desk.run(["lock", "a", "--json", "--", "sh", "-c", "echo hi"]);
    assert.equal(done.stderr, "hi\n");
    assert.deepEqual(done.stdout.match(/"event":"\w+"/g), ['"event":"acquired"', '"event":"released"']);
    const holder = await holding(desk, "a", LONG);
    const { code, stdout } = await desk.run(["lock", "a", "--json", "--no-wait", "--", "true"]);
    assert.equal(code, 3);
    assert.match(stdout, new RegExp(`^{"event":"refused",.*"why":"held","holders":\\[{"owner":"[^"]*:${holder.pid}"`));
    const [listed] = (await desk.json(["locks"])) as { name: string; holders: { fence: number }[] }[];
    assert.deepEqual({ name: listed?.name, held: listed?.holders.length }, { name: "a", held: 1 });
    desk.write("go", "");
    await holder.finished;
  });
});

describe("a store that goes away", { timeout: 120_000 }, () => {
  test("ends the command before the lock could be somebody else's, with 4", async (context) => {
    const server = await startNatsServer();
    const desk = new Desk(context, server.url);
    context.after(() => server.stop());
    const holder = desk.start([
      "lock",
      "a",
      ...SHORT,
      "--",
      "sh",
      "-c",
      `trap 'echo term >> events; exit' TERM; ${HOLD}`,
    ]);
    await until(() => desk.read("events").includes("began"), "the command");
    await server.kill();
    const { code, stderr } = await holder.finished;
    assert.equal(code, 4, stderr);
    assert.deepEqual(desk.lines("events").slice(1), ["term"]);
  });

  test("for less than the lease does no harm", async (context) => {
    const server = await startNatsServer();
    const desk = new Desk(context, server.url);
    context.after(() => server.stop());
    const holder = await holding(desk, "a", ["--lease", "30s"]);
    const waiter = await waiting(desk, "a", ["--lease", "30s", "--", "sh", "-c", "echo next >> events"]);
    await server.restart();
    desk.write("go", "");
    assert.deepEqual([(await holder.finished).code, (await waiter.finished).code], [0, 0]);
    assert.deepEqual(desk.lines("events").slice(1), ["ended", "next"]);
  });
});
