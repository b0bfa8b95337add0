/** What becomes of a worker that cannot start: what can get better is tried again, and what cannot is told. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { promisify } from "node:util";
import { BatonError, Closed, LevelsDiffer } from "../../src/index.ts";
import { setStage } from "../worker-stage.ts";

const away = new BatonError("STORE_UNAVAILABLE", "No connection.");

describe("a worker", () => {
  test("is ready when its first claim is under way", async () => {
    const stage = setStage();
    const worker = stage.queue.work(() => undefined);
    await worker.ready;
    assert.equal(stage.engine.claims.length, 1);
    await worker.stop();
  });

  test("whose store is away at first begins when it is there, with one warning", async () => {
    const stage = setStage();
    const declare = stage.engine.declare.bind(stage.engine);
    stage.engine.declare = () => Promise.reject(away);
    const worker = stage.queue.work(() => "fine");
    let isReady = false;
    void worker.ready.then(() => (isReady = true));
    await stage.clock.pass(8_000);
    assert.equal(isReady, false, "the worker is not ready yet");
    assert.deepEqual(stage.told(), ["trouble"]);
    stage.engine.declare = declare;
    await stage.clock.pass(1_000);
    assert.equal(isReady, true, "the worker says that it is ready");
    const receipt = await stage.queue.submit("car1", 1);
    await stage.clock.pass(2_000);
    assert.equal((await receipt.outcome()).state, "done");
    assert.deepEqual(stage.told(), ["trouble", "started", "done", "recovered"]);
    await worker.stop();
  });

  test("that cannot start tells why: by ready, by stopped and as an event", async () => {
    const stage = setStage();
    await stage.queue.submit("car1", 1);
    const worker = stage.baton.queue("cars", { levels: ["now", "later"] }).work(() => undefined);
    await assert.rejects(worker.ready, LevelsDiffer);
    await assert.rejects(worker.stopped, LevelsDiffer);
    assert.deepEqual(stage.told(), ["failed"]);
    assert.equal(stage.engine.claims.length, 0);
  });

  test("that is stopped before it was ready does not leave anybody waiting for it", async () => {
    const stage = setStage();
    stage.engine.declare = () => Promise.reject(away);
    const worker = stage.queue.work(() => undefined);
    await stage.clock.pass(0);
    const stopping = worker.stop({ grace: 0 });
    await assert.rejects(worker.ready, (error) => error instanceof BatonError && error.code === "STOPPING");
    assert.deepEqual(await stopping, { finished: 0, released: 0, abandoned: 0 });
  });

  test("is not made by a connection that is closed", async () => {
    const stage = setStage();
    await stage.baton.close();
    assert.throws(() => stage.queue.work(() => undefined), Closed);
    assert.throws(() => stage.baton.elect("boss"), Closed);
    await assert.rejects(stage.queue.take(), Closed);
    await assert.rejects(async () => stage.baton.lock("door"), Closed);
    await assert.rejects(async () => stage.baton.each(["a"], () => undefined), Closed);
  });
});

test("a program that never looks at its worker is told by a warning with a code, and does not crash", async () => {
  const program = `
    import { connect } from ${JSON.stringify(new URL("../../src/index.ts", import.meta.url).href)};
    const baton = await connect("memory:");
    await baton.queue("cars").submit("car1", 1);
    process.on("warning", ({ name, code }) => console.log(name, code));
    baton.queue("cars", { levels: ["a", "b"] }).work(() => undefined);
  `;
  const run = promisify(execFile);
  const { stdout, stderr } = await run(process.execPath, ["--input-type=module", "--eval", program]);
  assert.equal(stdout.trim(), "BatonWarning BATON_FAILED");
  assert.match(stderr, /\[BATON_FAILED\] BatonWarning: Worker .* could not start.*levels high, normal, low/);
});
