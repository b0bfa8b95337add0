/** What the command says about itself. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { describe, test } from "node:test";
import { Desk, MAIN } from "./baton-command.ts";

const COMMANDS = [
  "submit",
  "work",
  "status",
  "keys",
  "item",
  "dead",
  "pause",
  "resume",
  "cancel",
  "lock",
  "elect",
  "locks",
  "relay",
  "doctor",
  "completion",
];

describe("the face of the command", { concurrency: 4, timeout: 120_000 }, () => {
  test("--help is an overview with examples; --version is the package's", async (context) => {
    const desk = new Desk(context);
    const { code, stdout } = await desk.run(["--help"]);
    assert.equal(code, 0);
    for (const name of COMMANDS) assert.match(stdout, new RegExp(`^  ${name} `, "m"));
    assert.equal(stdout.match(/^ {2}baton \w+ (cars|nightly)/gm)?.length, 4);
    assert.match(stdout, /\$BATON_URL/);
    const manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
      version: string;
    };
    assert.equal((await desk.run(["--version"])).stdout, `${manifest.version}\n`);
  });

  test("every command explains itself, with examples, exit codes and variables", async (context) => {
    const desk = new Desk(context);
    await Promise.all(
      COMMANDS.map(async (name) => {
        const { code, stdout } = await desk.run([name, "--help"]);
        assert.equal(code, 0);
        assert.match(stdout, new RegExp(`^Usage: baton ${name}`));
        for (const heading of ["Global Options:", "Examples:", "Exit codes:"])
          assert.ok(stdout.includes(`\n${heading}\n`), `${name}: ${heading}`);
      }),
    );
    const { stdout } = await desk.run(["work", "--help"]);
    for (const name of ["LEASE", "CONCURRENCY", "ATTEMPTS", "UNTIL_EMPTY", "FATAL_CODES", "GRACE"])
      assert.ok(stdout.includes(`$BATON_${name}`), name);
  });

  test("a command ends when its server accepts connections and says nothing", async (context) => {
    const mute = createServer().listen(0, "127.0.0.1");
    const sockets = new Set<Socket>();
    mute.on("connection", (socket) => sockets.add(socket));
    context.after(() => {
      for (const socket of sockets) socket.destroy();
      mute.close();
    });
    await once(mute, "listening");
    const { port } = mute.address() as AddressInfo;
    const desk = new Desk(context, `nats://127.0.0.1:${port}`);
    const { code, stderr } = await desk.run(["status"]);
    assert.equal(code, 1);
    assert.match(stderr, /^baton: No NATS server could be reached at .*Nothing was done/);
  });

  test("a usage error exits 1 and says where to read on", async (context) => {
    const desk = new Desk(context);
    const mistakes: readonly (readonly [readonly string[], RegExp])[] = [
      [["sbmit"], /^baton: unknown command 'sbmit'\n\(Did you mean submit\?\)\nSee: baton --help/],
      [["status", "--wach"], /^baton: unknown option '--wach'\n\(Did you mean --watch\?\)\nSee: baton status --help/],
      [["lock", "nightly"], /^baton: lock needs a command to run: baton lock <name> -- <command>/],
      [["lock", "nightly", "--lease", "1ms", "--", "true"], /^baton: --lease: expected 100ms to 1d; found "1ms"/],
      [["lock", "nightly", "--", "./nothing"], /^baton: command: expected a file that exists and may be run/],
      [["elect", "boss"], /^baton: elect needs a command to run: baton elect <name> -- <command>/],
      [["work", "cars"], /^baton: work needs a command to run for each item: baton work <queue> -- <command>/],
      [["work", "cars", "--fatal-codes", "1,x", "--", "true"], /Expected exit codes from 1 to 255/],
      [["work", "cars", "--concurrency", "0", "--", "true"], /Expected a whole number, 1 or more/],
      [["work", "cars", "--lease", "1ms", "--", "true"], /^baton: --lease: expected 100ms to 1d; found "1ms"/],
    ];
    for (const [words, expected] of mistakes) {
      const { code, stderr } = await desk.run(words);
      assert.match(stderr, expected);
      assert.equal(code, 1);
    }
    assert.equal((await desk.run([])).code, 1);
  });

  test("flags can be variables; those of an item in work are not", async (context) => {
    const desk = new Desk(context);
    const env = { BATON_JSON: "1", BATON_MODE: "strict", BATON_DELAY: "", BATON_ID: "order-17", BATON_LEVEL: "high" };
    const first = JSON.parse((await desk.run(["submit", "cars", "car1"], { env })).stdout) as {
      id: string;
      level: string;
    };
    assert.notEqual(first.id, "order-17");
    assert.equal(first.level, "normal");
    assert.equal((await desk.run(["submit", "cars", "car1"], { env })).code, 3);
    const { stdout } = await desk.run(["status"], { env: { BATON_JSON: "0" } });
    assert.match(stdout, /^QUEUE/);
    const wrong = await desk.run(["work", "cars", "--", "true"], { env: { BATON_LEASE: "long" } });
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /value 'long' from env 'BATON_LEASE' is invalid/);
  });

  test("an old Node is told what to do, before anything that it could stumble over", async (context) => {
    const desk = new Desk(context);
    const older = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.11.1" } });`;
    const preload = `--import=data:text/javascript,${encodeURIComponent(older)}`;
    const { code, stdout, stderr } = await desk.run(["status"], { nodeArguments: [preload] });
    assert.equal(code, 1);
    assert.equal(stdout, "");
    assert.match(stderr, /^baton: Baton needs Node 24 or newer; this is Node 20\.11\.1 .* npx baton\n$/);
    assert.equal(readFileSync(MAIN, "utf8").split("\n", 1)[0], "#!/usr/bin/env node");
  });

  test("a reader that has had enough is no error", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("cars");
    await queue.submitMany(Array.from({ length: 5_000 }, (_, index) => ({ key: `car-${index}`, payload: "" })));
    const keys = desk.start(["keys", "cars", "--limit", "6000"]);
    keys.child.stdout?.once("data", () => keys.child.stdout?.destroy());
    const { code, stderr } = await keys.finished;
    assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
  });

  test("bash completes commands, options, choices and queues", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("cars");
    await queue.submit("car1", "");
    const script = desk.write("completion.bash", (await desk.run(["completion", "bash"])).stdout);
    const { stdout: status } = await desk.run(["status", "--json"]);
    desk.write("status.json", status);
    const complete = (line: string): string[] => {
      const words = line.split(" ");
      const program = `
        source "$1"; shift
        baton() { cat status.json; }
        COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
        _baton
        printf '%s\\n' "\${COMPREPLY[@]}"`;
      const { stdout, stderr } = spawnSync("bash", ["-c", program, "bash", script, ...words], {
        cwd: desk.folder,
        encoding: "utf8",
      });
      assert.equal(stderr, "");
      return stdout.split("\n").filter((word) => word !== "");
    };
    assert.deepEqual(complete("baton s"), ["submit", "status"]);
    assert.deepEqual(complete("baton submit c"), ["cars"]);
    assert.deepEqual(complete("baton --store x: submit cars car1 --level "), ["high", "normal", "low"]);
    assert.deepEqual(complete("baton submit --mode l"), ["latest"]);
    assert.deepEqual(complete("baton work cars --until"), ["--until-empty"]);
    assert.deepEqual(complete("baton lock nightly --no"), ["--no-wait"]);
    assert.deepEqual(complete("baton lo"), ["lock", "locks"]);
    assert.deepEqual(complete("baton dead cars r"), ["retry"]);
    assert.deepEqual(complete("baton completion "), ["bash", "zsh", "fish"]);
    assert.deepEqual(complete("baton status --st"), ["--store"]);
    assert.ok(complete("baton work cars -- tru").includes("true"));
  });

  test("zsh and fish get every command and option", async (context) => {
    const desk = new Desk(context);
    const { stdout: zsh } = await desk.run(["completion", "zsh"]);
    const { stdout: fish } = await desk.run(["completion", "fish"]);
    for (const name of COMMANDS) {
      assert.match(zsh, new RegExp(`^    '${name}:`, "m"));
      assert.match(fish, new RegExp(` -a ${name} -d `));
    }
    assert.match(zsh, /'--mode\[[^']*\]:value:\(fifo latest strict\)'/);
    assert.match(fish, /-l mode -r -a 'fifo latest strict'/);
  });
});
