/** Closing a handle whose server stands still, and one whose server is well: the same for every server. */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { test } from "node:test";

/** It takes three seconds, and more on a machine that is busy. */
const CLOSED_MS = 8_000;
const TIMEOUT = { timeout: 90_000 };

interface StoppedServer {
  readonly url: string;
  pause(): Promise<void>;
  kill(): Promise<void>;
  stop(): Promise<void>;
}

interface Told {
  readonly closedMs: number;
  readonly answeredMs: number;
  readonly results: readonly string[];
}

export function addClosingTests(start: () => Promise<StoppedServer>): void {
  for (const isStopped of [true, false])
    test(
      isStopped
        ? "a process whose server stands still closes in about three seconds, and ends"
        : "a process whose server is well finishes what is under way, closes and ends",
      TIMEOUT,
      async (context) => {
        const server = await start();
        context.after(() => server.stop());
        const child = fork(join(import.meta.dirname, "close-stopped.ts"), [server.url, "submits"], { silent: true });
        context.after(() => child.kill("SIGKILL"));
        let errors = "";
        child.stderr?.setEncoding("utf8").on("data", (text: string) => (errors += text));
        const exited = once(child, "close");
        const ready = await Promise.race([once(child, "message"), exited.then(() => [errors])]);
        assert.deepEqual(ready.slice(0, 1), ["ready"]);
        if (isStopped) await server.pause();
        const told = once(child, "message");
        child.send("close");
        const [message] = (await Promise.race([told, exited.then(() => [errors])])) as [Told];
        const { closedMs, answeredMs, results } = message;
        const from = performance.now();
        assert.deepEqual([await exited, errors], [[0, null], ""]);
        const endedMs = performance.now() - from;
        context.diagnostic(
          `closed after ${closedMs.toFixed(0)} ms, all answered after ${answeredMs.toFixed(0)} ms, ended ${endedMs.toFixed(0)} ms later`,
        );
        assert.ok(closedMs < CLOSED_MS, `closed after ${closedMs} ms`);
        assert.ok(answeredMs < CLOSED_MS, `answered after ${answeredMs} ms`);
        assert.ok(endedMs < CLOSED_MS, `ended ${endedMs} ms later`);
        if (!isStopped) assert.deepEqual(new Set(results), new Set(["fulfilled"]));
        await server.kill();
      },
    );
}
