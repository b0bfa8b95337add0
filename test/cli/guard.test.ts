/** A guard is let go while a command runs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Guard } from "../../src/cli/guard/guard.ts";
import { until } from "../kit/until.ts";
import { Desk } from "./baton-command.ts";

const LEASE_MS = 60_000;

test("what runs when its guard is let go is asked to end, and has time for it", async (context) => {
  const desk = new Desk(context);
  const guard = new Guard({ leaseMs: LEASE_MS, stdout: "stderr" });
  const tenure = { leftMs: LEASE_MS, signal: new AbortController().signal };
  const [began, go] = [desk.path("began"), desk.path("go")];
  const script = `trap 'while [ ! -e ${go} ]; do sleep 0.05; done; exit 9' TERM; touch ${began}; while :; do sleep 0.05; done`;
  const request = { command: "sh", commandArguments: ["-c", script], environment: {}, input: Buffer.from("") };
  const running = guard.run(request, tenure, 0);
  await until(() => desk.list().includes("began"), "the command");
  let isGone = false;
  const leaving = guard[Symbol.asyncDispose]().then(() => (isGone = true));
  assert.deepEqual(
    await guard.run(request, tenure, 0),
    { type: "not-started", code: "STOPPING", message: "its guard leaves" },
    "nothing new begins",
  );
  assert.equal(isGone, false);
  desk.write("go", "");
  const end = await running;
  assert.equal(end.type === "exited" ? end.code : end.type, 9);
  await leaving;
});
