/** Whoever mistypes is told what was wrong, and nothing is started or removed. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { parseArguments } from "./arguments.ts";

describe("refused:", () => {
  const wrong: readonly (readonly [args: readonly string[], says: RegExp])[] = [
    [["--engine", "mysql"], /--engine: one of sqlite, nats, nats-cluster, postgres, redis; found mysql/],
    [["--minutes", "soon"], /--minutes: a number above 0; found soon/],
    [["--minutes", "0"], /--minutes: a number above 0; found 0/],
    [["--seed", "1.5"], /--seed: a whole number; found 1\.5/],
    [["--seed=-1"], /--seed: a whole number; found -1/],
    [["--control", "toString"], /--control: all, or one of .*; found toString/],
    [["sqlite"], /'sqlite'/],
  ];
  for (const [args, says] of wrong) test(args.join(" "), () => assert.throws(() => parseArguments(args), says));
});

test("what is asked for is read", () => {
  const expected = { store: "nats", minutes: 0.5, seed: 0, folder: "here", controls: [] };
  assert.deepEqual(parseArguments(["--engine", "nats", "--minutes", "0.5", "--seed", "0", "--out", "here"]), expected);
  assert.equal(parseArguments(["-h"]), "help");
});

test("a folder in which somebody keeps something else is left alone", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-mine-"));
  writeFileSync(join(folder, "diary.txt"), "dear");
  const main = join(import.meta.dirname, "main.ts");
  const { status, stderr } = spawnSync(process.execPath, [main, "--out", folder], { encoding: "utf8" });
  assert.equal(status, 2);
  assert.match(stderr, /^--out: .* has something in it that no chaos run wrote; choose another folder\n/);
  assert.deepEqual(readdirSync(folder), ["diary.txt"]);
  rmSync(folder, { recursive: true });
});
