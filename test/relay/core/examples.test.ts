/**
 * The relay's examples run, as a user would run them: through the package's exports, which is to say from the build.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { connect } from "../../../src/index.ts";
import { until } from "../../kit/until.ts";

const EXAMPLES = join(import.meta.dirname, "../../../examples/relay");
const BATON = join(import.meta.dirname, "../../../dist/cli/main.js");

describe("examples of the relay", { concurrency: 2, timeout: 60_000 }, () => {
  test("in-a-program.ts", async () => {
    const child = spawn(process.execPath, [join(EXAMPLES, "in-a-program.ts")], { stdio: ["ignore", "pipe", "pipe"] });
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
    assert.equal(child.exitCode, 0, stderr);
    const lines = stdout.split("\n").map((line) => line.replace(/:.*/, ""));
    assert.deepEqual(lines.slice(0, 4), ["urgent", "urgent", "bulk", "bulk"]);
  });

  test("relay.yaml and receiver.ts", async (context) => {
    const folder = mkdtempSync(join(tmpdir(), "baton-relay-"));
    const url = `sqlite:${join(folder, "work.db")}`;
    const receiver = spawn(process.execPath, [join(EXAMPLES, "receiver.ts")], {
      env: { ...process.env, PORT: "0" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    receiver.stdout.setEncoding("utf8").on("data", (part: string) => (said += part));
    await until(() => said.includes("port:"), "the receiver to listen");
    const PORT = /port: (\d+)/.exec(said)?.[1] ?? "";
    const relay = spawn(process.execPath, [BATON, "relay", "--config", join(EXAMPLES, "relay.yaml")], {
      env: { ...process.env, BATON_URL: url, PORT },
      stdio: ["ignore", "ignore", "inherit"],
    });
    const baton = await connect(url);
    context.after(async () => {
      relay.kill("SIGTERM");
      receiver.kill();
      await Promise.all([once(relay, "exit"), baton.close()]);
      rmSync(folder, { recursive: true, force: true });
    });
    await baton.queue("bulk").submit("car1", "wash");
    await baton.queue("urgent").submit("car2", "repair");
    const bad = await baton.queue("bulk").submit("car3", "nonsense", { id: "bad" });
    assert.equal((await bad.outcome({ timeout: "30s" })).state, "dead");
    await until(() => said.includes("urgent car2 1") && said.includes("bulk car1 1"), "the others");
  });
});
