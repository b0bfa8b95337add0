/** Every example runs, as a user would run it: through the package's exports, which is to say from the build. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";

const EXAMPLES = join(import.meta.dirname, "../examples");

/** What each must show, in this order; other lines may come in between. */
const SHOWS: Readonly<Record<string, readonly RegExp[]>> = {
  "quick-start": [
    /car1: wash begins/,
    /car2: wash begins/,
    /car1: wash is done/,
    /car1: wax begins/,
    /car1: wax is done/,
  ],
  // Which newsletter comes first is open: a worker may go on with a key for a moment while nothing more urgent is ready.
  "urgent-first": [/^outage: .*Cy/, /^question: .*Bob/, /^newsletter: /, /^newsletter: /],
  "latest-mode": [/version 2 replaces home-1/, /version 5 replaces home-4/, /home-1: replaced/, /published version 5/],
  "strict-mode": [
    /200 the report on ada/,
    /409 a report on ada is under way/,
    /200 the report on bob/,
    /200 the report on ada/,
  ],
  fence: [/fence 1 is lost/, /fence 2 writes 100: accepted/, /fence 1 writes 101: refused/, /balance is 100/],
  "lock-fenced": [/fence \d+ writes 100: accepted/, /fence \d+ writes 1: refused/, /the balance is 100$/],
  "lock-unfenced": [/writes 100$/, /after its stall: writes 1$/, /the balance is 1: 100 are lost/],
  election: [/SIGTERM to (ada|bob|cy)/, /SIGKILL to (ada|bob|cy)/, /SIGTERM to (ada|bob|cy)/],
  each: [
    /report for/,
    /has done \d, skipped \d, failed \d/,
    /late: report for cy/,
    /late has done 1, skipped 5, failed 0/,
  ],
  retries: [
    /ada: sent/,
    /given up: cy after 1 attempt\(s\): .*never/,
    /given up: dee after 3/,
    /1 is tried again, 1 is dropped/,
    /dee: sent/,
  ],
  "outcome-and-progress": [/nothing is done twice/, /\d+ %/, /done at attempt 1: \{"frames":12/],
  "several-processes": [
    /process \d+: car1, wash/,
    /process \d+: car1, wax/,
    /process \d+: car1, polish/,
    /0 items are left/,
  ],
  "two-machines": [/car2, wash, attempt 1/, /killing \d+/, /car2, wash, attempt 2/, /car2, wax/, /0 items are left/],
};

describe("examples", { concurrency: 2 }, () => {
  for (const file of readdirSync(EXAMPLES).filter((name) => name.endsWith(".ts"))) {
    test(file, { timeout: 60_000 }, async () => {
      const expected = SHOWS[file.replace(/\.ts$/, "")];
      assert.ok(expected, `There is no word in this test on what ${file} shows.`);
      const { code, stdout, stderr } = await run(join(EXAMPLES, file));
      assert.equal(code, 0, stderr);
      assert.equal(stderr, "");
      assertShows(stdout, expected);
    });
  }
});

async function run(
  file: string,
): Promise<{ readonly code: number | null; readonly stdout: string; readonly stderr: string }> {
  const child = spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "exit")]);
  return { code: child.exitCode, stdout, stderr };
}

function assertShows(stdout: string, expected: readonly RegExp[]): void {
  const lines = stdout.split("\n");
  let from = 0;
  for (const pattern of expected) {
    const found = lines.findIndex((line, index) => index >= from && pattern.test(line));
    assert.notEqual(found, -1, `${String(pattern)} is not shown, or too early, in:\n${stdout}`);
    from = found + 1;
  }
}
