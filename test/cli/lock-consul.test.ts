/** baton lock on a Consul that others use as well. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, test, type TestContext } from "node:test";
import { findConsul } from "../../servers/consul-binary.ts";
import { startConsulServer } from "../../servers/consul-server.ts";
import { started } from "../started.ts";
import { ask } from "../locks/consul-desk.ts";
import { Lateness } from "../kit/lateness.ts";
import { until } from "../kit/until.ts";
import { Desk } from "./baton-command.ts";

const LONG = ["--lease", "10m"];
/** From the deletion to the exit of the command, with the start of nothing in between. */
const SOON_MS = 5_000;

describe("baton lock on a shared Consul", { concurrency: 2, timeout: 120_000 }, () => {
  const server = started(() => startConsulServer());
  const desk = (context: TestContext): Desk => new Desk(context, `consul://${server().address}`);

  test("a lock that an operator deletes ends the command, with exit code 4", async (context) => {
    const at = desk(context);
    const command = `trap 'echo terminated >> events; exit 1' TERM; echo began >> events; while :; do sleep 0.05; done`;
    const first = at.start(["lock", "deleted", ...LONG, "--", "sh", "-c", command]);
    await until(() => at.read("events").includes("began"), "the holder");
    using lateness = new Lateness();
    const deletedAt = performance.now();
    await ask(server(), "/kv/baton/locks/deleted?recurse", { method: "DELETE" });
    const { code, stderr } = await first.finished;
    assert.equal(code, 4, stderr);
    assert.match(stderr, /Lock deleted \(fence \d+\) is lost: the store no longer has it/);
    assert.match(stderr, /Lock "deleted" \(fence \d+\) is lost/);
    assert.deepEqual(at.lines("events"), ["began", "terminated"]);
    lateness.assertWithin(performance.now() - deletedAt, SOON_MS, "the end of the command");
  });

  test("a leader whose session is destroyed steps down, and leads again under a higher term", async (context) => {
    const at = desk(context);
    const command = `echo "$BATON_FENCE" >> terms; while :; do sleep 0.05; done`;
    const leader = at.start(["elect", "stepped", ...LONG, "--", "sh", "-c", command]);
    await until(() => at.lines("terms").length === 1, "the first term");
    const [slot] = (await (await ask(server(), "/kv/baton/locks/stepped/slot/0")).json()) as [{ Session: string }];
    await ask(server(), `/session/destroy/${slot.Session}`, { method: "PUT" });
    await until(() => at.lines("terms").length === 2, "the second term");
    leader.child.kill("SIGTERM");
    assert.equal((await leader.finished).code, 0);
    const [before, later] = at.lines("terms").map(Number);
    assert.ok((later ?? 0) > (before ?? 0));
  });

  test("consul lock on the same prefix is named in a warning", async (context) => {
    const at = desk(context);
    const { program } = await findConsul();
    const holder = spawn(program, ["lock", `-http-addr=${server().address}`, "baton/locks/both", "sleep 60"], {
      stdio: "ignore",
    });
    try {
      const holds = async (): Promise<boolean> => {
        const found = await ask(server(), "/kv/baton/locks/both/.lock");
        return found.status === 200 && (await found.text()).includes('"Session"');
      };
      while (!(await holds()));
      const { code, stderr } = await at.run(["lock", "both", ...LONG, "--", "true"]);
      assert.equal(code, 0, stderr);
      assert.match(stderr, /Lock both is held, but .*baton\/locks\/both\/\.lock.*consul lock/s);
    } finally {
      const exited = once(holder, "exit");
      holder.kill("SIGTERM");
      await exited;
    }
  });

  test("foreign keys below the prefix hide no lock from baton locks", async (context) => {
    const at = new Desk(context, `consul://${server().address}/listed`);
    const first = at.start(["lock", "good", ...LONG, "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.05; done"]);
    const keys = [
      "listed/plain",
      "listed/good/.lock",
      "listed/bad%25zz/x",
      "listed/torn/slot/0",
      "listed/torn/lock",
      "listed/folder/",
    ];
    for (const key of keys) await ask(server(), `/kv/${key}`, { method: "PUT", body: "not ours" });
    while ((await ask(server(), "/kv/listed/good/slot/0")).status !== 200);
    const { code, stdout, stderr } = await at.run(["locks"]);
    assert.equal(code, 0, stderr);
    assert.match(stdout, new RegExp(`^good +[^ ]*:${first.pid} `, "m"));
    for (const key of ["listed/plain", "listed/good/.lock", "listed/bad%zz/x"])
      assert.ok(stderr.includes(key), `${key} in ${stderr}`);
    assert.match(stdout, /^torn +\(damaged: see baton doctor\)/m);
    assert.doesNotMatch(stderr, /folder/);
    // The lock itself cannot be had: who holds it cannot be read.
    const torn = await at.run(["lock", "torn", "--no-wait", ...LONG, "--", "true"]);
    assert.equal(torn.code, 1);
    assert.match(
      torn.stderr,
      /The record of lock torn is damaged: somebody else wrote listed\/torn\/lock\..*doctor --repair/,
    );
    const doctor = await at.run(["doctor"]);
    assert.equal(doctor.code, 1);
    assert.match(doctor.stdout, /^error +lock torn: .*listed\/torn\/lock/m);
    assert.match(doctor.stdout, /^warning +lock good: .*listed\/good\/\.lock/m);
    const repaired = await at.run(["doctor", "--repair"]);
    assert.equal(repaired.code, 0, repaired.stdout);
    assert.match(repaired.stdout, /^repair +lock torn: /m);
    assert.equal((await ask(server(), "/kv/listed/torn/lock")).status, 404);
    assert.equal((await ask(server(), "/kv/listed/good/.lock")).status, 200);
    assert.equal((await at.run(["lock", "torn", "--no-wait", ...LONG, "--", "true"])).code, 0);
    at.write("go", "");
    assert.equal((await first.finished).code, 0);
  });

  test("a lease that is too short is refused by the option's name, with what allows it", async (context) => {
    const { code, stderr } = await desk(context).run(["lock", "short", "--lease", "5s", "--", "true"]);
    assert.equal(code, 1);
    assert.match(
      stderr,
      /^baton: --lease: expected a time from 10s to 1d \(.*session_ttl_min.*shortest-lease=5s\); found "5s"/,
    );
    // The URL may say what the servers do not know.
    const unsure = new Desk(context, `consul://${server().address}?shortest-lease=5s`);
    const refused = await unsure.run(["lock", "short", "--lease", "5s", "--", "true"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /^baton: Consul refused the lease: .*session_ttl_min.*Nothing was done\.$/m);
    const delayed = await desk(context).run(["lock", "short", "--delay-after-loss", "2m", "--", "true"]);
    assert.match(delayed.stderr, /^baton: --delay-after-loss: expected a time from 0ms to 1m; found "2m"/);
  });
});
