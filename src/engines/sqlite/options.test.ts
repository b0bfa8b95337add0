import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { resolve } from "node:path";
import { describe, test } from "node:test";
import { connect } from "../../client/connect.ts";
import { checkSqliteOptions, parseSqliteUrl } from "./options.ts";

describe("a URL of SQLite", () => {
  const files: Readonly<Record<string, string>> = {
    "sqlite:work.db": "work.db",
    "sqlite:./a/work.db": "./a/work.db",
    "sqlite:a%20b%25.db": "a b%.db",
    "sqlite:/var/lib/work.db": "/var/lib/work.db",
    "sqlite:///var/lib/work.db": "/var/lib/work.db",
    "sqlite://localhost/var/lib/work.db": "/var/lib/work.db",
    "SQLITE:work.db": "work.db",
  };
  for (const [url, file] of Object.entries(files))
    test(`${url} names a file`, () => assert.deepEqual(parseSqliteUrl(url), { file }));

  test("may say how much survives", () => {
    assert.deepEqual(parseSqliteUrl("sqlite:w.db?synchronous=normal"), { file: "w.db", synchronous: "normal" });
    assert.throws(() => parseSqliteUrl("sqlite:w.db?synchronous=of"), { field: "synchronous" });
    assert.throws(() => parseSqliteUrl("sqlite:w.db?synchronous=off?more"), { field: "synchronous" });
  });

  const refusals: Readonly<Record<string, RegExp>> = {
    "sqlite::Memory:": /connect to memory: \(without sqlite:\)/,
    "sqlite::memory:": /connect to memory: \(without sqlite:\)/,
    "sqlite::memory:?synchronous=off": /connect to memory:/,
    "sqlite:%3Amemory%3A": /connect to memory:/,
    "sqlite:": /sqlite: followed by the name of a file/,
    "sqlite:?synchronous=off": /followed by the name of a file/,
    "sqlite:/": /followed by the name of a file/,
    "sqlite://": /followed by the name of a file/,
    "sqlite:///": /followed by the name of a file/,
    "sqlite://work.db": /sqlite:work\.db or sqlite:\/\/\/var/,
    "sqlite:%20": /the name of a file/,
    "sqlite:a%00b": /the name of a file/,
    "sqlite:100%.db": /% written as %25/,
    "sqlite:file:work.db": /not a file: URL/,
    "sqlite:file::memory:?cache=shared": /not a file: URL/,
    "file:work.db": /sqlite:FILE/,
    ":memory:": /such as sqlite:work\.db or memory:/,
  };
  for (const [url, said] of Object.entries(refusals)) {
    test(`${url} is refused, and makes no file`, async () => {
      const before = readdirSync(".");
      await assert.rejects(connect(url), { message: said });
      assert.deepEqual(readdirSync("."), before);
    });
  }
});

test("a file in code is held to the same", () => {
  assert.equal(checkSqliteOptions({ file: "work.db", synchronous: undefined }).file, resolve("work.db"));
  for (const file of [":memory:", "file:work.db", "", " ", undefined, new URL("file:///tmp/x.db")])
    assert.throws(() => checkSqliteOptions({ file: file as string }), { code: "INVALID_INPUT", field: "file" });
});
