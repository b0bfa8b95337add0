/** Signals to a worker: what runs may finish, what does not is given back. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { until } from "../kit/until.ts";
import { Desk } from "./baton-command.ts";

describe("a worker is told to stop", { concurrency: 4, timeout: 120_000 }, () => {
  test("SIGTERM: a command that runs may finish, and nothing new is taken", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("q");
    for (const id of ["one", "two"]) await queue.submit("key", "", { id });
    const script = `echo began >> events; while [ ! -e go ]; do sleep 0.1; done; echo ended >> events`;
    const worker = desk.start(["work", "q", "--", "sh", "-c", script]);
    await until(() => desk.lines("events").length === 1, "the command");
    process.kill(worker.pid, "SIGTERM");
    worker.child.stderr?.once("data", () => desk.write("go", ""));
    const { code, stderr } = await worker.finished;
    assert.equal(code, 0, stderr);
    assert.match(stderr, /SIGTERM: takes nothing new; running commands have 20s to finish/);
    assert.deepEqual(desk.lines("events"), ["began", "ended"]);
    assert.equal((await queue.item("one"))?.state, "done");
    assert.equal((await queue.item("two"))?.state, "waiting");
  });

  test("the grace period ends: the command is ended and its item given back without a counted attempt", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("q");
    await queue.submit("key", "", { id: "one" });
    const script = `trap 'echo term >> events; exit 1' TERM; echo began >> events; while :; do sleep 0.1; done`;
    const worker = desk.start(["work", "q", "--grace", "100ms", "--json", "--", "sh", "-c", script]);
    await until(() => desk.lines("events").length === 1, "the command");
    process.kill(worker.pid, "SIGINT");
    const { code, stdout } = await worker.finished;
    assert.equal(code, 0);
    assert.match(stdout, /"event":"released"/);
    assert.match(stdout, /"event":"stopped".*"released":1,"abandoned":0/);
    assert.deepEqual(desk.lines("events"), ["began", "term"]);
    const item = await queue.item("one");
    assert.deepEqual({ state: item?.state, attempt: item?.attempt }, { state: "waiting", attempt: 0 });
  });

  test("a second signal hurries, and a command that ignores SIGTERM is killed in time to be given back", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("q");
    await queue.submit("key", "", { id: "one" });
    const script = `trap 'echo term >> events' TERM; echo began >> events; while :; do sleep 0.1; done`;
    const worker = desk.start(["work", "q", "--grace", "10m", "--", "sh", "-c", script]);
    await until(() => desk.lines("events").length === 1, "the command");
    let said = "";
    worker.child.stderr?.on("data", (text: string) => (said += text));
    process.kill(worker.pid, "SIGTERM");
    await until(() => said.includes("takes nothing new"), "the first answer");
    process.kill(worker.pid, "SIGTERM");
    const { code, stderr } = await worker.finished;
    assert.equal(code, 0, stderr);
    assert.deepEqual(desk.lines("events"), ["began", "term"]);
    const item = await queue.item("one");
    assert.deepEqual({ state: item?.state, attempt: item?.attempt }, { state: "waiting", attempt: 0 });
  });

  test("a worker whose events nobody reads stops", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("q");
    for (const key of ["a", "b", "c"]) await queue.submit(key, "");
    const worker = desk.start(["work", "q", "--json", "--", "true"]);
    worker.child.stdout?.once("data", () => {
      worker.child.stdout?.destroy();
      // All of the others may have been told by then: only the next event finds that nobody reads.
      void queue.submit("d", "");
    });
    const { code } = await worker.finished;
    assert.equal(code, 0);
  });
});
