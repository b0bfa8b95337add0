import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import type { HistoryRecord } from "../demo/history.ts";
import { picture } from "../demo/picture.ts";
import { schedule } from "../demo/story.ts";
import { verify } from "../demo/verify.ts";

const MAIN = join(import.meta.dirname, "../demo/main.ts");

test("the demo runs, shows a takeover, verifies its history and cleans up", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "baton-demo-test-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const { stdout, code } = await runDemo(folder);
  assert.equal(code, 0, stdout);
  assert.match(stdout, /was killed \(SIGKILL\) while it worked on car6/);
  assert.match(stdout, /took over car6/);
  assert.match(stdout, /no car was ever worked on by two/);
  assert.ok(!stdout.includes("\u001b"), "Output that is no terminal gets no escape sequences");
  assert.deepEqual(readdirSync(folder), []);
});

test("the demo stops at Ctrl-C and leaves nothing behind", async (context) => {
  const folder = mkdtempSync(join(tmpdir(), "baton-demo-test-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  const { code } = await runDemo(folder, (child) => child.stdout.once("data", () => child.kill("SIGINT")));
  assert.equal(code, 130);
  assert.deepEqual(readdirSync(folder), []);
});

type Demo = ReturnType<typeof startDemo>;

function startDemo(folder: string) {
  const env = { ...process.env, TMPDIR: folder, NO_COLOR: "1" };
  return spawn(process.execPath, [MAIN], { env, stdio: ["ignore", "pipe", "inherit"] });
}

async function runDemo(folder: string, begin: (child: Demo) => void = () => undefined) {
  const child = startDemo(folder);
  begin(child);
  const [stdout] = await Promise.all([text(child.stdout), once(child, "exit")]);
  return { stdout, code: child.exitCode };
}

describe("the picture", () => {
  const history: HistoryRecord[] = [
    ...schedule().map(
      ({ item, car, level, atMs }) => ({ type: "submit", from: atMs, at: atMs, item, car, level }) as const,
    ),
    start("worker 1", "item-1", "car1", 1, 10),
    { type: "kill", at: 700, worker: "worker 1" },
    start("worker 2", "item-1", "car1", 2, 2_700, 2),
  ];
  const running = { worker: "worker 2", fence: 2, since: 0, deadline: 2_000, attempt: 2, id: "item-1" };
  const keys = [{ key: "car1", state: "running", paused: false, waiting: 30, delayed: 0, running }] as const;
  const lines = picture({ history, keys, begunAt: 0, at: 9_000, wall: 0 });

  test("fits a terminal of 80 by 24", () => {
    assert.ok(lines.length <= 23, `It has ${lines.length} lines.`);
    for (const line of lines) assert.ok(line.length <= 80, `${line.length} columns: ${line}`);
  });

  test("shows who works on a car, what waits, and what became of the dead worker's", () => {
    const car1 = lines.find((line) => line.includes("car1"));
    assert.match(car1 ?? "", /car1\s+worker 2 . (high|normal|low)\s+[▲●○]+.*111✗+2+/);
    assert.ok(lines.some((line) => line.includes("worker 2 took over car1 2.0 s later, fence 2 after 1")));
  });
});

describe("the verification", () => {
  const good: readonly HistoryRecord[] = [
    submit("a", "low", 0),
    submit("b", "low", 2),
    submit("c", "high", 4),
    start("worker 1", "a", "car1", 1, 10),
    end("worker 1", "a", 20),
    start("worker 2", "c", "car1", 2, 21),
    { type: "kill", at: 30, worker: "worker 2" },
    start("worker 1", "c", "car1", 3, 40, 2),
    end("worker 1", "c", 50),
    start("worker 1", "b", "car1", 4, 51),
    end("worker 1", "b", 60),
  ];

  const forged: Readonly<Record<string, readonly HistoryRecord[]>> = {
    "two at a time": swap(good, start("worker 1", "b", "car1", 4, 45)),
    "begun while one runs that never ended": good.filter((record) => record.type !== "kill"),
    "a fence twice": swap(good, start("worker 1", "b", "car1", 3, 51)),
    "an item that was never begun": [...good, submit("d", "low", 70)],
    "an item that was done twice": [...good, start("worker 1", "b", "car1", 5, 70), end("worker 1", "b", 80)],
    "low before high": swap(good, submit("c", "low", 4), submit("b", "high", 2)),
    "the later of two equals first": swap(good, submit("a", "low", 6), submit("c", "low", 4)),
  };

  test("accepts a good history", () => {
    assert.deepEqual(
      verify(good).flatMap(({ violations }) => violations),
      [],
    );
  });

  for (const [name, history] of Object.entries(forged)) {
    test(`finds ${name}`, () => {
      const inOrder = history.toSorted((a, b) => a.at - b.at);
      assert.notDeepEqual(
        verify(inOrder).flatMap(({ violations }) => violations),
        [],
        `the demo must notice ${name}`,
      );
    });
  }
});

function submit(item: string, level: "high" | "low", at: number): HistoryRecord {
  return { type: "submit", from: at, at: at + 1, item, car: "car1", level };
}

function start(worker: string, item: string, car: string, fence: number, at: number, attempt = 1): HistoryRecord {
  return { type: "start", at, worker, item, car, level: "low", fence, attempt };
}

function end(worker: string, item: string, at: number): HistoryRecord {
  return { type: "end", at, worker, item, done: true };
}

/** The history with some records put in place of those of the same kind about the same item. */
function swap(history: readonly HistoryRecord[], ...records: HistoryRecord[]): readonly HistoryRecord[] {
  return history.map((old) => records.find((record) => isAbout(record, old)) ?? old);
}

function isAbout(record: HistoryRecord, old: HistoryRecord): boolean {
  return record.type === old.type && "item" in record && "item" in old && record.item === old.item;
}
