/** `baton relay --check`: what is missing, and what does not answer, is said before anything depends on it. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, test, type TestContext } from "node:test";
import { freePort } from "../../../servers/free-port.ts";
import { storePackages } from "../../../src/relay/check/packages.ts";
import { Desk } from "../../cli/baton-command.ts";
import { openSqsDesk, REGION } from "../sources/sqs-desk.ts";

const ROOT = join(import.meta.dirname, "../../..");

/** The built package in a folder of its own, with these packages beside it and no others. */
class Installation {
  readonly folder: string = mkdtempSync(join(tmpdir(), "baton-installed-"));

  constructor(t: TestContext, ...packages: readonly string[]) {
    t.after(() => rmSync(this.folder, { recursive: true }));
    const own = join(this.folder, "node_modules/batonq");
    mkdirSync(own, { recursive: true });
    cpSync(join(ROOT, "dist"), join(own, "dist"), { recursive: true });
    cpSync(join(ROOT, "package.json"), join(own, "package.json"));
    for (const name of ["commander", ...packages]) {
      const place = join(this.folder, "node_modules", name);
      mkdirSync(dirname(place), { recursive: true });
      symlinkSync(join(ROOT, "node_modules", name), place);
    }
  }

  write(name: string, content: string): void {
    writeFileSync(join(this.folder, name), content);
  }

  async baton(...words: readonly string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    const main = join(this.folder, "node_modules/batonq/dist/cli/main.js");
    const child = spawn(process.execPath, [main, ...words], { cwd: this.folder, stdio: ["ignore", "pipe", "pipe"] });
    const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
    const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
    return { code: await ended, stdout, stderr };
  }
}

const MANY = {
  sources: [
    { type: "sqs", queue: "orders", dead_letter: { store: "redis://localhost", queue: "dead" } },
    { type: "pubsub", subscription: "projects/p/subscriptions/s" },
    { type: "baton", store: "sqlite:a.db?wake=nats://localhost:4222", queue: "q" },
  ],
  transforms: ["cloudevents"],
  processor: { type: "http", url: "http://localhost:5000/" },
  keys: { store: "postgres://localhost/app", queue: "orders" },
};

describe("the check of what is installed", { concurrency: 2 }, () => {
  test("names every package that is missing, what for, and one line that installs them; so does a start", async (t) => {
    const installed = new Installation(t, "pg");
    installed.write("relay.json", JSON.stringify(MANY));
    const line =
      "Run: npm install @aws-sdk/client-sqs @redis/client @google-cloud/pubsub @nats-io/transport-node cloudevents undici.";
    for (const words of [["--check"], ["--check", "--connect"], []]) {
      const { code, stderr } = await installed.baton("relay", "--config", "relay.json", ...words);
      assert.equal(code, 1);
      assert.ok(stderr.includes(line), stderr);
      assert.match(stderr, /@redis\/client \(the dead letters of source orders\)/);
      assert.match(stderr, /undici \(delivery by HTTP\)/);
      assert.ok(!stderr.includes("pg"), stderr);
    }
    const { code, stdout } = await installed.baton("relay", "--config", "relay.json", "--check", "--json");
    assert.equal(code, 1);
    assert.equal((JSON.parse(stdout) as { missing: unknown[] }).missing.length, 6);
  });

  test("names what a configuration in YAML needs in the same line as what reads it", async (t) => {
    const installed = new Installation(t, "pg");
    const file = `
x-shared: &shared { region: us-west-2 }
sources:
  - { type: sqs, queue: orders, <<: *shared }
  - { type: baton, store: "postgres://h/db?wake=nats://h:4222", queue: own }
transforms: [dapr_aws]
processor:
  type: http
  url: http://localhost:5000/
`;
    installed.write("relay.yaml", file);
    const { code, stderr } = await installed.baton("relay", "--config", "relay.yaml", "--check");
    assert.equal(code, 1);
    assert.match(stderr, /Run: npm install yaml @aws-sdk\/client-sqs @nats-io\/transport-node undici\.$/m);
    const all = new Installation(t, "undici", "yaml", "pg", "@aws-sdk/client-sqs", "@nats-io/transport-node");
    all.write("relay.yaml", file);
    const checked = await all.baton("relay", "--config", "relay.yaml", "--check");
    assert.deepEqual([checked.code, checked.stderr], [0, ""]);
  });

  test("says nothing where all is there", async (t) => {
    const installed = new Installation(t, "undici", "yaml");
    installed.write("relay.yaml", "sources: [{ type: baton, store: 'sqlite:a.db', queue: q }]\n");
    const bad = await installed.baton("relay", "--config", "relay.yaml", "--check");
    assert.deepEqual([bad.code, bad.stderr.includes("processor: expected")], [1, true]);
    installed.write("relay.json", JSON.stringify({ ...MANY, sources: [MANY.sources[2]], transforms: [], keys: null }));
    const { code, stderr } = await installed.baton("relay", "--config", "relay.json", "--check");
    assert.equal(code, 1);
    assert.match(stderr, /needs a package that is not installed: @nats-io\/transport-node \(source q\)/);
  });
});

test("stores need the client of their scheme, and of what wakes them", () => {
  assert.deepEqual(storePackages("sqlite:work.db"), []);
  assert.deepEqual(storePackages("nats://localhost:4222"), ["@nats-io/transport-node"]);
  assert.deepEqual(storePackages("postgresql://h/db?wake=redis://localhost"), ["pg", "@redis/client"]);
});

test("the check of connections asks queues and targets, and sends nothing to a target", async (t) => {
  const sqs = await openSqsDesk();
  t.after(() => sqs[Symbol.asyncDispose]());
  sqs.server.createQueue("orders", { region: REGION });
  sqs.send("orders", "left alone");
  let requests = 0;
  let connections = 0;
  const server = createServer((_request, response) => {
    requests += 1;
    response.end();
  });
  server.on("connection", () => (connections += 1));
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  t.after(() => server.close().closeAllConnections());
  const desk = new Desk(t);
  const source = { type: "sqs", queue: "orders", region: REGION, endpoint: sqs.server.address };
  const http = (url: string): object => ({ type: "http", url });
  const routes = {
    good: { sources: [source], processor: http(`http://127.0.0.1:${port}/`) },
    bad: {
      sources: [
        { ...source, queue: "ordres" },
        { ...source, queue: `${sqs.server.address}/000000000000/other` },
        { ...source, name: "letters", dead_letter_queue: "no-letters" },
      ],
      processor: http(`http://127.0.0.1:${await freePort()}/`),
    },
    command: {
      sources: [
        { type: "baton", store: `sqlite:${desk.path("none.db")}`, queue: "q" },
        { type: "baton", name: "misspelt", store: `sqlite:${desk.path("work.db")}`, queue: "ordres" },
      ],
      processor: { type: "command", command: ["no-such-program"] },
    },
  };
  assert.equal((await desk.run(["--store", `sqlite:${desk.path("work.db")}`, "submit", "orders", "k"])).code, 0);
  const config = desk.write("relay.json", JSON.stringify({ routes }));
  const env = { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" };
  const { code, stdout } = await desk.run(["relay", "--config", config, "--check", "--connect"], { env });
  assert.equal(code, 1);
  const lines = stdout.split("\n").filter((line) => /^(not )?ok/.test(line));
  assert.deepEqual(
    lines.map((line) => line.replace(/^((?:not )?ok: [^:]*).*$/, "$1")),
    [
      "ok: source orders",
      "ok: the target http",
      "not ok: source ordres",
      "not ok: source other",
      "not ok: source letters",
      "not ok: the target http",
      "ok: source q",
      "ok: source misspelt",
      "not ok: the command of route command",
    ],
  );
  assert.match(stdout, /not ok: source ordres: .*NonExistentQueue|QueueDoesNotExist/);
  assert.match(stdout, /not ok: source letters: SQS refused to find the dead letters of source letters \(no-letters\)/);
  assert.match(stdout, /^ok: source q: there is no store .*none\.db yet; the relay makes it$/m);
  assert.match(
    stdout,
    /^ok: source misspelt: there is no queue ordres yet, and the relay makes it; the store has orders$/m,
  );
  assert.equal(existsSync(desk.path("none.db")), false, "a look makes no store");
  assert.match(stdout, /could not be reached: connect ECONNREFUSED.*No request was sent/);
  assert.deepEqual([connections, requests], [1, 0]);
  const { ready, hidden } = sqs.counts("orders");
  assert.deepEqual([ready, hidden], [1, 0], "nothing was taken out of the queue");
});
