/** A carrier that is away costs nobody anything: commands do what they say, and end; connections close. */
import assert from "node:assert/strict";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { after, before, describe, test } from "node:test";
import { startNatsServer } from "../../servers/nats-server.ts";
import { startPostgres } from "../../servers/postgres.ts";
import { startRedisServer } from "../../servers/redis-server.ts";
import { until } from "../kit/until.ts";
import { Desk } from "../cli/baton-command.ts";
import { draw } from "../kit/draw.ts";
import { Lateness } from "../kit/lateness.ts";
import { CARRIERS, SilentServer, urlOf, waysToBeAway } from "./carriers.ts";

const CHILD = join(import.meta.dirname, "children/close.ts");
/** The carrier gets one second, and a quarter to be let go of; the rest is for a slow machine. */
const CLOSE_MS = 3_000;
/** From the call of `close` to the end of the process: what is left of attempts to connect must not keep it. */
const LINGER_MS = 3_000;

/** Commands, in an order in which each has something to do, and whether it surely has something to tell. */
const COMMANDS: readonly { readonly words: readonly string[]; readonly speaks: boolean; readonly prints: RegExp }[] = [
  { words: ["submit", "cars", "car1", "paint"], speaks: true, prints: /^accepted / },
  { words: ["submit", "cars", "car2", "--id", "one", "--delay", "1h"], speaks: true, prints: /^accepted / },
  { words: ["pause", "cars"], speaks: true, prints: /^paused / },
  { words: ["resume", "cars"], speaks: true, prints: /^resumed / },
  { words: ["cancel", "cars", "one"], speaks: false, prints: /cancelled/ },
  { words: ["work", "cars", "--until-empty", "--", "true"], speaks: false, prints: /^/ },
  { words: ["lock", "nightly", "--no-wait", "--", "true"], speaks: false, prints: /^/ },
  { words: ["status"], speaks: false, prints: /cars/ },
  { words: ["keys", "cars"], speaks: false, prints: /^/ },
];

/** Each carrier, away in each way. */
const WAYS = CARRIERS.flatMap((carrier) =>
  ["refuses connections", "has an unknown name", "says nothing"].map((way) => [carrier, way] as const),
);

let silent: SilentServer;

before(async () => {
  silent = await SilentServer.start();
});
after(async () => {
  await silent[Symbol.asyncDispose]();
});

describe("a carrier that is away", { concurrency: 2, timeout: 300_000 }, () => {
  for (const [carrier, way] of draw.some("ways to be away from commands", WAYS, 3, named)) {
    test(`${carrier} ${way}: every command does what it says, ends with 0, and warns once`, async (context) => {
      const desk = new Desk(context);
      const url = urlOf(carrier, (await waysToBeAway(silent)[way]?.()) ?? "");
      const store = `sqlite:${desk.path("away.db")}?synchronous=off&wake=${encodeURIComponent(url)}`;
      for (const { words, speaks, prints } of COMMANDS) {
        const { code, signal, stdout, stderr } = await desk.run(["--store", store, ...words]);
        const told = `baton ${words.join(" ")}\n${stdout}${stderr}`;
        assert.deepEqual({ code, signal }, { code: 0, signal: null }, told);
        assert.match(stdout, prints, told);
        const warnings = stderr.split("Wake-ups are not carried").length - 1;
        assert.ok(speaks ? warnings === 1 : warnings <= 1, told);
        // It was done.
        assert.doesNotMatch(stderr, /unsettled|Warning:|Nothing was done/, told);
      }
    });
  }

  for (const [carrier, way] of draw.some("ways to be away from a connection", WAYS, 5, named)) {
    test(`${carrier} ${way}: a connection closes, and the process ends`, async (context) => {
      const desk = new Desk(context);
      const url = urlOf(carrier, (await waysToBeAway(silent)[way]?.()) ?? "");
      for (const what of ["submit", "work"]) {
        const child = new Closer(desk, url, what);
        assert.equal(await child.expectQuickEnd(), 1, "warnings");
      }
    });
  }

  for (const carrier of CARRIERS) {
    test(`${carrier} stands still while it is used: a connection closes, and the process ends`, async (context) => {
      const desk = new Desk(context);
      await using server = await START[carrier]();
      const child = new Closer(desk, server.url, "stand");
      await child.ready();
      await server.pause();
      child.goOn();
      // What is published over NATS is not answered, so that nobody may know yet.
      assert.ok((await child.expectQuickEnd()) <= 1, "warnings");
    });
  }
});

function named([carrier, way]: readonly [string, string]): string {
  return `${carrier} ${way}`;
}

const START = { nats: startNatsServer, redis: startRedisServer, postgres: startPostgres };

/** A process that opens a store with this carrier, and closes it. */
class Closer {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #exited: Promise<unknown[]>;
  readonly #lateness = new Lateness();
  #stdout = "";
  #stderr = "";

  constructor(desk: Desk, carrier: string, what: string) {
    const store = `sqlite:${desk.path(`${what}.db`)}?synchronous=off&wake=${encodeURIComponent(carrier)}`;
    this.#child = spawn(process.execPath, [CHILD, store, what], { stdio: ["pipe", "pipe", "pipe"] });
    this.#child.stdout.setEncoding("utf8").on("data", (text: string) => (this.#stdout += text));
    this.#child.stderr.setEncoding("utf8").on("data", (text: string) => (this.#stderr += text));
    this.#exited = once(this.#child, "close");
  }

  async ready(): Promise<void> {
    await until(() => this.#stdout.includes("ready") || this.#child.exitCode !== null, "a worker");
  }

  goOn(): void {
    this.#child.stdin.write("\n");
  }

  /** Resolves with the number of warnings. */
  async expectQuickEnd(): Promise<number> {
    await this.#exited;
    const ended = Date.now();
    const { exitCode, signalCode } = this.#child;
    assert.deepEqual({ exitCode, signalCode }, { exitCode: 0, signalCode: null }, this.#stdout + this.#stderr);
    const said: unknown = JSON.parse(this.#stdout.replace("ready\n", ""));
    assert.ok(isSaid(said), this.#stdout);
    this.#lateness.assertWithin(said.closedInMs, CLOSE_MS, "closing");
    this.#lateness.assertWithin(ended - said.at, LINGER_MS, "the end of the process after that");
    this.#lateness[Symbol.dispose]();
    return this.#stderr.split("Wake-ups are not carried").length - 1;
  }
}

function isSaid(value: unknown): value is { readonly closedInMs: number; readonly at: number } {
  return typeof value === "object" && value !== null && "closedInMs" in value && "at" in value;
}
