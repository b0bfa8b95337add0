/** The relay as a process: killed, stopped, told to read its configuration again. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { freePort } from "../../../servers/free-port.ts";
import { until } from "../../kit/until.ts";
import { Desk, type Started } from "../../cli/baton-command.ts";
import { Receiver } from "./receiver.ts";

interface Line {
  readonly event: string;
  readonly id?: string;
  readonly message?: string;
}

/** A relay from two Baton queues of the desk's store to a receiver, as a configuration file says it. */
class RelayDesk extends Desk {
  configure(
    url: string,
    { lease = "30s", ...more }: { readonly lease?: string; readonly [name: string]: unknown } = {},
  ): string {
    const source = (queue: string): object => ({ type: "baton", store: "${BATON_URL}", queue, lease });
    const config = {
      sources: [source("high"), source("low")],
      concurrency: 2,
      processor: { type: "http", url, timeout: "30s" },
      grace: "10s",
      ...more,
    };
    return this.write("relay.json", JSON.stringify(config));
  }

  relay(config: string): { readonly started: Started; readonly lines: Line[] } {
    const started = this.start(["relay", "--config", config]);
    const lines: Line[] = [];
    let rest = "";
    started.child.stdout?.on("data", (text: string) => {
      const parts = (rest + text).split("\n");
      rest = parts.pop() ?? "";
      lines.push(...parts.map((part) => JSON.parse(part) as Line));
    });
    return { started, lines };
  }
}

describe("baton relay", { concurrency: 3, timeout: 120_000 }, () => {
  test("that is killed in the middle loses nothing: another one delivers it again", async (context) => {
    const desk = new RelayDesk(context);
    const receiver = await Receiver.start(context);
    let hanging = true;
    receiver.answer = (_, response) => (hanging ? undefined : response.writeHead(200).end());
    const queue = await desk.queue("high");
    const receipts = await queue.submitMany([1, 2, 3, 4].map((n) => ({ key: `k${n}`, payload: `p${n}`, id: `m${n}` })));
    // Long enough for a relay on a busy machine to keep; the other one waits for its end.
    const config = desk.configure(receiver.url, { lease: "6s" });
    const first = desk.relay(config);
    await until(() => receiver.received.length === 2, "two deliveries to be under way");
    first.started.child.kill("SIGKILL");
    await first.started.finished;
    hanging = false;
    const second = desk.relay(config);
    const outcomes = await Promise.all(receipts.map((receipt) => receipt.outcome({ timeout: "45s" })));
    assert.deepEqual(
      outcomes.map(({ state, attempt }) => `${state} ${attempt}`),
      ["done 2", "done 2", "done 1", "done 1"],
    );
    const ids = receiver.received.map(
      ({ headers }) => `${String(headers["baton-id"])} ${String(headers["baton-attempt"])}`,
    );
    assert.deepEqual(ids.toSorted(), ["m1 1", "m1 2", "m2 1", "m2 2", "m3 1", "m4 1"]);
    second.started.child.kill("SIGTERM");
    assert.equal((await second.started.finished).code, 0);
  });

  test("that is told to stop finishes what it has begun, within its grace, and takes nothing new", async (context) => {
    const desk = new RelayDesk(context);
    const receiver = await Receiver.start(context);
    const waiting: (() => void)[] = [];
    receiver.answer = (_, response) => waiting.push(() => response.writeHead(200).end());
    const queue = await desk.queue("low");
    const receipts = await queue.submitMany([1, 2, 3].map((n) => ({ key: `k${n}`, payload: "x", id: `m${n}` })));
    const admin = { port: await freePort() };
    const { started, lines } = desk.relay(desk.configure(receiver.url, { admin, grace: "60s" }));
    await until(() => waiting.length === 2, "two deliveries to be under way");
    started.child.kill("SIGTERM");
    const isReady = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${admin.port}/readyz`)).ok;
    await until(async () => !(await isReady()), "the relay to hear that it is to stop");
    waiting.forEach((answer) => answer());
    const { code, stderr } = await started.finished;
    assert.equal(code, 0, stderr);
    const last = lines.at(-1);
    assert.deepEqual(
      { ...last, at: 0 },
      { at: 0, level: "info", event: "stopped", finished: 2, givenBack: 0, abandoned: 0 },
    );
    const states = await Promise.all(receipts.map(async ({ id }) => (await queue.item(id))?.state));
    assert.deepEqual(states, ["done", "done", "waiting"]);
  });

  test("whose grace is over gives back what it has, uncounted and not acknowledged", async (context) => {
    const desk = new RelayDesk(context);
    const receiver = await Receiver.start(context);
    receiver.answer = () => undefined;
    const queue = await desk.queue("low");
    await queue.submit("k1", "x", { id: "m1" });
    const { started } = desk.relay(desk.configure(receiver.url, { grace: "200ms" }));
    await until(() => receiver.received.length === 1, "a delivery to be under way");
    started.child.kill("SIGTERM");
    assert.equal((await started.finished).code, 0);
    const item = await queue.item("m1");
    assert.deepEqual([item?.state, item?.attempt], ["waiting", 0]);
  });

  test("whose log nobody reads any more finishes what it has begun, and says so by its exit code", async (context) => {
    const desk = new RelayDesk(context);
    const receiver = await Receiver.start(context);
    const waiting: (() => void)[] = [];
    receiver.answer = ({ headers }, response) => {
      const answer = (): unknown => response.writeHead(200).end();
      return headers["baton-id"] === "short" ? answer() : waiting.push(answer);
    };
    const queue = await desk.queue("low");
    const { started, lines } = desk.relay(desk.configure(receiver.url, { grace: "60s" }));
    await until(() => lines.some(({ event }) => event === "started"), "the relay to start");
    const long = await queue.submit("k1", "x", { id: "long" });
    await until(() => waiting.length === 1, "a delivery to be under way");
    started.child.stdout?.destroy();
    // Its end is a line that nobody reads.
    const short = await queue.submit("k2", "x", { id: "short" });
    await short.outcome({ timeout: "45s" });
    await new Promise((resolve) => setTimeout(resolve, 300));
    waiting.forEach((answer) => answer());
    const { code, stderr } = await started.finished;
    assert.equal(code, 1, stderr);
    assert.match(stderr, /Nobody reads the log/);
    const { state, attempt } = await long.outcome({ timeout: "45s" });
    assert.deepEqual([state, attempt], ["done", 1]);
  });

  test("reads its configuration again on SIGHUP, and goes on as it was if that is wrong", async (context) => {
    const desk = new RelayDesk(context);
    const [old, next] = [await Receiver.start(context), await Receiver.start(context)];
    const config = desk.configure(old.url);
    const queue = await desk.queue("high");
    const { started, lines } = desk.relay(config);
    await until(() => lines.some(({ event }) => event === "started"), "the relay to start");
    desk.write("relay.json", '{ "sources": [] }');
    started.child.kill("SIGHUP");
    await until(() => lines.some(({ event }) => event === "trouble"), "the refusal");
    assert.match(lines.find(({ event }) => event === "trouble")?.message ?? "", /sources/);
    await queue.submit("k1", "x");
    await until(() => old.received.length === 1, "a delivery as before");
    desk.configure(next.url);
    started.child.kill("SIGHUP");
    await until(() => lines.some(({ event }) => event === "reloaded"), "the new configuration");
    await queue.submit("k1", "y");
    await until(() => next.received.length === 1, "a delivery to the new receiver");
    started.child.kill("SIGINT");
    assert.equal((await started.finished).code, 0);
  });

  test("says what is wrong with a configuration, and starts nothing", async (context) => {
    const desk = new RelayDesk(context);
    const good = desk.configure("http://127.0.0.1:1/");
    const checked = await desk.run(["relay", "--config", good, "--check"]);
    assert.deepEqual(
      [checked.code, checked.stdout],
      [0, "main: high, low (strict) to a processor of type http, 2 at a time\n"],
    );
    const bad = desk.write(
      "bad.json",
      '{ "sources": [{ "type": "bton" }], "processor": { "type": "http", "url": "nowhere" } }',
    );
    const refused = await desk.run(["relay", "--config", bad, "--check"]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /sources\[0\]\.type.*bton/);
    assert.match(refused.stderr, /processor\.url.*nowhere/);
  });
});
