import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { InvalidInput } from "./errors.ts";
import { checkId, checkKey, checkLevelName, checkQueueName, decodeKey, encodeKey } from "./names.ts";

function refuses(check: (value: string) => unknown, values: readonly unknown[]): void {
  for (const value of values) {
    assert.throws(() => check(value as string), InvalidInput, `${String(value)} should be refused`);
  }
}

function accepts(check: (value: string) => unknown, values: readonly string[]): void {
  for (const value of values) assert.equal(check(value), value);
}

const NOT_TEXT: readonly unknown[] = [undefined, null, 0, true, {}, ["a"]];

describe("queue names", () => {
  test("are letters, digits, _ and -", () => accepts(checkQueueName, ["cars", "A", "0", "a_b-C", "x".repeat(64)]));
  test("are nothing else", () => {
    refuses(checkQueueName, ["", "_a", "-a", "a.b", "a/b", "a b", "ä", "a\n", "x".repeat(65), ...NOT_TEXT]);
  });
});

describe("level names", () => {
  test("are lower-case words", () => accepts(checkLevelName, ["high", "a", "level-2", `a${"b".repeat(31)}`]));
  test("are nothing else", () => refuses(checkLevelName, ["", "High", "2", "-a", "a_b", "a".repeat(33), ...NOT_TEXT]));
});

describe("keys", () => {
  test("are any text of up to 512 bytes", () => {
    accepts(checkKey, ["a", " ", "a\nb", "car/1.>*", "🚗", "é".repeat(256), "x".repeat(512), "🚗".repeat(128), "@1"]);
  });

  test("are counted in bytes of UTF-8, not in characters", () => {
    refuses(checkKey, ["x".repeat(513), `${"é".repeat(256)}x`, `${"🚗".repeat(128)}x`, "漢".repeat(171)]);
    accepts(checkKey, ["漢".repeat(170)]);
  });

  test("without a UTF-8 form of their own are refused: two of them would become one", () => {
    refuses(checkKey, ["\ud83d", "a\ude97b", "\ude97\ud83d"]);
  });

  test("are not empty, have no NUL, and are text", () => refuses(checkKey, ["", "a\0b", ...NOT_TEXT]));

  test("become tokens that no store can misread, and come back the same", () => {
    const keys = ["a", "A", "car/1.>*", "🚗", "é", "e\u0301", " ", "a\nb", "x".repeat(512)];
    const tokens = keys.map(encodeKey);
    for (const token of tokens) assert.match(token, /^[A-Za-z0-9_-]+$/);
    assert.equal(new Set(tokens).size, keys.length);
    assert.deepEqual(tokens.map(decodeKey), keys);
  });
});

describe("ids", () => {
  test("follow the rules of keys", () => {
    accepts(checkId, ["order-17", "a@b", "🚗"]);
    refuses(checkId, ["", "\ud83d", "a\0", "x".repeat(513), ...NOT_TEXT]);
  });

  test("that begin with @ belong to the store", () => {
    assert.throws(() => checkId("@1"), /does not begin with @/);
  });
});
