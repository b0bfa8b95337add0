import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { BAD_DATA, failureOf } from "./command-failure.ts";

const FATAL = new Set([3]);
const LONGEST_TAIL = 1_800;

function exited(code: number, stderr = ""): ReturnType<typeof failureOf> {
  return failureOf({ type: "exited", code, stderr }, "build", FATAL);
}

describe("a command", () => {
  test("that exits with 0 has not failed, and with anything else it has", () => {
    assert.equal(exited(0), undefined);
    for (const [code, fatal] of [
      [1, false],
      [2, false],
      [3, true],
      [BAD_DATA, true],
      [BAD_DATA + 1, false],
    ] as const) {
      const { message, ...failure } = exited(code) ?? assert.fail(`${code} is a failure`);
      assert.deepEqual({ code: failure.code, fatal: failure.fatal }, { code: `EXIT_${code}`, fatal });
      assert.equal(message, `The command exited with code ${code}.`);
    }
  });

  test("that was killed is tried again", () => {
    const failure = failureOf({ type: "killed", signal: "SIGKILL", stderr: "oh" }, "build", FATAL);
    assert.equal(failure?.message, "The command was killed by SIGKILL. It said:\noh");
    assert.deepEqual([failure.code, failure.fatal], ["KILLED", false]);
  });

  test("that could not be started says why, and is tried again", () => {
    for (const [code, why] of [
      ["ENOENT", "there is no such file on the PATH (ENOENT)."],
      ["EACCES", "it is not allowed to be executed (EACCES)."],
      ["EMFILE", "too many (EMFILE)."],
    ] as const) {
      const failure = failureOf({ type: "not-started", code, message: "too many" }, "build", FATAL);
      assert.equal(failure?.message, `The command build could not be started: ${why}`);
      assert.deepEqual([failure.code, failure.fatal], [code, false]);
    }
  });

  test("is quoted with the end of what it said, in whole characters", () => {
    const tailOf = (stderr: string): string => (exited(1, stderr)?.message ?? "").replace(/^.*\n/, "");
    const whole = `a${"b".repeat(LONGEST_TAIL - 1)}`;
    assert.equal(tailOf(whole), whole);
    assert.equal(tailOf(`c${whole}`), whole);
    // Three bytes each: the cut is in the middle of one, which is left out.
    const euros = "€".repeat(LONGEST_TAIL / 3);
    assert.equal(tailOf(`€€${euros}`), euros);
    assert.equal(tailOf(`${euros}x`), `${euros}x`.slice(1));
    assert.equal(tailOf(`${euros}xy`), `${euros}xy`.slice(1));
  });
});
