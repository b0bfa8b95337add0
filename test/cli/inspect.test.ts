import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { until } from "../kit/until.ts";
import { Desk } from "./baton-command.ts";

/** A key that would clear the screen, if a terminal ever saw it. */
const HOSTILE = "car\u001b[2J\u009b31m\u202e";

describe("looking and operating", { concurrency: 4, timeout: 120_000 }, () => {
  test("status shows every queue, and what runs in one", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("cars");
    await queue.submit("car1", "", { level: "high" });
    await queue.submit("car2", "");
    await queue.submit("car3", "", { delay: "1h" });
    await (await desk.queue("mail")).submit("ann", "");
    const worker = desk.start(["work", "cars", "--name", "bay-1", "--", "sh", "-c", "touch began; sleep 60"]);
    await until(() => desk.list().includes("began"), "the command");
    const all = await desk.run(["status"]);
    assert.match(all.stdout, /^QUEUE +WAITING +BY LEVEL +DELAYED +RUNNING +DEAD +PAUSED\n/);
    assert.match(all.stdout, /\ncars +1 +high 0, normal 1, low 0 +1 +1 +0 +-\nmail +1 /);
    const one = await desk.run(["status", "cars"]);
    assert.match(
      one.stdout,
      /\nKEY +ITEM +WORKER +SINCE +ATTEMPT +PROGRESS +LEASE ENDS\ncar1 +@\S+ +bay-1 +\S+ ago +1 +- +in \S+\n$/,
    );
    const { running, runs } = (await desk.json(["status", "cars"])) as {
      running: number;
      runs: { key: string; state: string; running: { worker: string } }[];
    };
    assert.equal(running, 1);
    assert.deepEqual(
      runs.map((run) => [run.key, run.state, run.running.worker]),
      [["car1", "running", "bay-1"]],
    );
    process.kill(worker.pid, "SIGKILL");
    await worker.finished;
  });

  test("status of a store without queues says so, whether there is a store or not", async (context) => {
    const desk = new Desk(context);
    const before = await desk.run(["status"]);
    assert.match(before.stdout, /^No queues: there is no store yet at sqlite:\S+work\.db/);
    const none = await desk.run(["status", "--store", "sqlite::memory:"]);
    assert.match(
      none.stderr,
      /connect to memory: \(without sqlite:\)/,
      "what cannot be a store is not one that is yet to be made",
    );
    assert.deepEqual(await desk.json(["status"]), []);
    await (await desk.baton()).lock("build", { wait: 0 });
    const empty = await desk.run(["status"]);
    assert.equal(empty.stdout, "No queues yet. The first baton submit makes one.\n");
    assert.deepEqual(await desk.json(["status"]), []);
  });

  test("locks says who holds what, and why a free one is kept", async (context) => {
    const desk = new Desk(context);
    assert.equal((await desk.run(["locks"])).stdout, "No locks.\n");
    const baton = await desk.baton();
    await baton.each(["migrate"], () => undefined, { remember: "1h" });
    await baton.lock("build", { wait: 0, data: "half way" });
    const { stdout } = await desk.run(["locks"]);
    assert.match(stdout, /^LOCK +HOLDER +SINCE +FENCE +SLOTS +WAITING +DATA\n/);
    assert.match(stdout, /\nbuild +\S+:\d+\S* +\S+ ago +\d+ +1 +\S+ +half way\n/);
    assert.match(stdout, /\nmigrate +\(retired, free in (?:59m|1h)[^)]*\) +- +- +1 +\S+ +-\n/);
  });

  test("status --watch into a pipe prints when something changes, and ends with a signal", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("cars");
    await queue.submit("car1", "");
    const watcher = desk.start(["status", "--watch", "--json"]);
    let seen = "";
    watcher.child.stdout?.on("data", (text: string) => (seen += text));
    await until(() => seen.includes(`"waiting":1`), "the first line");
    await queue.submit("car2", "");
    await until(() => seen.includes(`"waiting":2`), "the second line");
    process.kill(watcher.pid, "SIGINT");
    const { code, stdout } = await watcher.finished;
    assert.equal(code, 0);
    assert.equal(stdout.trim().split("\n").length, 2);
  });

  test("keys come in pages", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("cars");
    for (const key of ["a", "b", "c"]) await queue.submit(key, "");
    const first = (await desk.json(["keys", "cars", "--limit", "2"])) as { key: string }[];
    assert.equal(first.length, 2);
    const next = (await desk.json(["keys", "cars", "--after", first[1]?.key ?? ""])) as { key: string }[];
    assert.deepEqual([...first, ...next].map(({ key }) => key).toSorted(), ["a", "b", "c"]);
    const { stderr } = await desk.run(["keys", "cars"], { env: { BATON_LIMIT: "1" } });
    assert.match(stderr, /^There may be more: --after/);
  });

  test("what a user gave is never obeyed by a terminal", async (context) => {
    const desk = new Desk(context);
    await (await desk.queue("cars")).submit(HOSTILE, "", { id: HOSTILE });
    for (const words of [
      ["keys", "cars"],
      ["item", "cars", HOSTILE],
      ["item", "cars", `no ${HOSTILE}`],
      ["submit", "q", HOSTILE],
      ["keys", HOSTILE],
    ]) {
      for (const json of [[], ["--json"]]) {
        const { stdout, stderr } = await desk.run([...words, ...json]);
        // oxlint-disable-next-line no-control-regex -- these are what must not be there
        assert.doesNotMatch(stdout + stderr, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
      }
    }
    const [key] = (await desk.json(["keys", "cars"])) as { key: string }[];
    assert.equal(key?.key, HOSTILE);
  });

  test("item: where it is, and 1 if it is nowhere", async (context) => {
    const desk = new Desk(context);
    await (await desk.queue("cars")).submit("car1", "", { id: "order-17", delay: "1h" });
    const found = await desk.run(["item", "cars", "order-17"]);
    assert.match(found.stdout, /^id +order-17\nkey +car1\nlevel +normal\nstate +delayed\n/);
    const missing = await desk.run(["item", "cars", "order-18"]);
    assert.equal(missing.code, 1);
    assert.match(missing.stderr, /^baton: There is no item order-18 in queue cars\./);
  });

  test("item: why it waits for its retry, and how its attempts ended", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("cars");
    await queue.submit("car1", "", { id: "order-17" });
    const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:9"), { code: "ECONNREFUSED" });
    await (await queue.take({ name: "bay-1" }))[0]?.retry(new TypeError("fetch failed", { cause: refused }));
    const [second] = await queue.take({ name: "bay-2" });
    await second?.release();
    const waits = await desk.run(["item", "cars", "order-17"]);
    assert.match(waits.stdout, /\nfailure +fetch failed: connect ECONNREFUSED 127\.0\.0\.1:9\n/);
    assert.match(
      waits.stdout,
      /\n\nATTEMPT +ENDED +WHEN +WORKER +REASON\n +1 +failed +\S+ ago +bay-1 +fetch failed: connect ECONNREFUSED 127\.0\.0\.1:9\n +2 +released +\S+ ago +bay-2 +given back, does not count\n$/,
    );
    const report = (await desk.json(["item", "cars", "order-17"])) as {
      failure: { code: string };
      attempts: { end: string; worker: string }[];
    };
    assert.equal(report.failure.code, "ECONNREFUSED");
    assert.deepEqual(
      report.attempts.map(({ end, worker }) => [end, worker]),
      [
        ["failed", "bay-1"],
        ["released", "bay-2"],
      ],
    );
    await (await queue.take({ name: "bay-3" }))[0]?.done(() => "painted");
    const done = await desk.run(["item", "cars", "order-17"]);
    assert.match(done.stdout, /\nresult +not kept: JSON cannot carry it: it is a function\n\nATTEMPT/);
  });

  test("dead letters are listed, retried and dropped", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("cars");
    for (const id of ["one", "two", "three"]) await queue.submit(id, "paint", { id });
    await desk.run(["work", "cars", "--until-empty", "--quiet", "--", "sh", "-c", "echo no paint >&2; exit 65"]);
    const listed = await desk.run(["dead", "cars", "list"]);
    assert.match(
      listed.stdout,
      /\none +one +normal +1 +\S+ ago +The command exited with code 65\. It said: no paint\n/,
    );
    for (const action of ["retry", "drop"]) {
      const bare = await desk.run(["dead", "cars", action]);
      assert.equal(bare.code, 1);
      assert.match(bare.stderr, /needs the ids of dead letters, or --all/);
    }
    assert.deepEqual(await desk.json(["dead", "cars", "retry", "one"]), { queue: "cars", retried: 1 });
    assert.equal((await desk.run(["dead", "cars", "retry", "one"])).code, 1);
    const dropped = await desk.run(["dead", "cars", "drop", "--all"]);
    assert.equal(dropped.stdout, "dropped 2 dead letters\n");
    const [cars] = (await desk.json(["status"])) as { waiting: number; dead: number }[];
    assert.deepEqual([cars?.waiting, cars?.dead], [1, 0]);
  });

  test("pause, resume and cancel", async (context) => {
    const desk = new Desk(context);
    const queue = await desk.queue("cars");
    await queue.submit("car1", "", { id: "one" });
    assert.equal((await desk.run(["pause", "cars"])).stdout, "paused cars\n");
    assert.equal((await queue.status()).paused, true, "the queue is paused");
    assert.deepEqual(await desk.json(["resume", "cars"]), { queue: "cars", paused: false });
    assert.deepEqual(await desk.json(["pause", "cars", "car1"]), { queue: "cars", key: "car1", paused: true });
    assert.equal((await queue.keys())[0]?.paused, true, "the key is paused");
    assert.equal((await desk.run(["cancel", "cars", "one"])).stdout, "cancelled one\n");
    const again = await desk.run(["cancel", "cars", "one"]);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /has ended already/);
    assert.equal((await desk.run(["cancel", "cars", "two"])).code, 1);
  });

  test("a queue that nobody has used is not made by looking", async (context) => {
    const desk = new Desk(context);
    await (await desk.queue("cars")).submit("car1", "");
    for (const words of [
      ["status", "vans"],
      ["keys", "vans"],
      ["item", "vans", "x"],
      ["dead", "vans", "list"],
      ["pause", "vans"],
      ["cancel", "vans", "x"],
    ]) {
      const { code, stderr } = await desk.run(words);
      assert.equal(code, 1);
      assert.equal(stderr, `baton: There is no queue "vans" in this store. It has: cars.\n`);
    }
    assert.deepEqual(((await desk.json(["status"])) as unknown[]).length, 1);
  });

  test("doctor exits 0 for a store that is well, and 1 for a file that is none", async (context) => {
    const desk = new Desk(context);
    await (await desk.queue("cars")).submit("car1", "");
    const well = (await desk.json(["doctor"])) as { node: string; store: string; findings: { severity: string }[] };
    assert.equal(well.node, process.versions.node);
    assert.ok(well.findings.every(({ severity }) => severity !== "error"));
    desk.write("novel.db", "It was a dark and stormy night. ".repeat(200));
    const { code, stderr, stdout } = await desk.run(["doctor", "--store", "sqlite:novel.db"]);
    assert.equal(code, 1, stdout);
    assert.doesNotMatch(stderr, /\n\s+at /);
  });
});
