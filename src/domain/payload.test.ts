import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { InvalidInput } from "./errors.ts";
import { bodyBytes, bodySize, bodyText, decodePayload, encodePayload, JSON_TYPE } from "./payload.ts";

describe("payloads", () => {
  const values: readonly unknown[] = [null, true, 0, -1.5, "", "text", "🚗", [], [1, [2]], {}, { a: { b: "c" } }];
  for (const value of values) {
    test(`${JSON.stringify(value)} comes back as it went`, () => {
      const payload = encodePayload(value);
      assert.equal(payload.type, JSON_TYPE);
      assert.deepEqual(decodePayload(payload), value);
    });
  }

  test("nothing becomes null", () => assert.equal(decodePayload(encodePayload(undefined)), null));

  test("bytes stay bytes, unless they are said to be something else", () => {
    const bytes = new Uint8Array([0, 255, 10]);
    assert.equal(encodePayload(bytes).type, "application/octet-stream");
    assert.deepEqual(decodePayload(encodePayload(bytes)), bytes);
    const json = encodePayload(Buffer.from('{"a":1}'), "application/json");
    assert.deepEqual(decodePayload(json), { a: 1 });
  });

  test("a view into a larger buffer is only what it shows", () => {
    const view = new Uint8Array(Buffer.from("before{}after").buffer, 0).slice(0, 0);
    assert.equal(bodyText(view), "");
    const whole = Buffer.from("xx{}xx");
    const part = new Uint8Array(whole.buffer, whole.byteOffset + 2, 2);
    assert.equal(bodyText(part), "{}");
    assert.deepEqual(decodePayload({ type: JSON_TYPE, body: part }), {});
  });

  test("text of another type is left alone", () => {
    const payload = encodePayload("<a/>", "application/xml");
    assert.deepEqual(payload, { type: "application/xml", body: "<a/>" });
    assert.deepEqual(decodePayload(payload), Buffer.from("<a/>"));
    assert.equal(decodePayload(encodePayload("hello", "text/markdown")), "hello");
  });

  test("every JSON type is JSON", () => {
    for (const type of ["application/json; charset=utf-8", "application/cloudevents+json"]) {
      assert.deepEqual(decodePayload(encodePayload({ a: 1 }, type)), { a: 1 });
    }
  });

  test("what JSON cannot carry is refused, with a reason", () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    const hostile = {
      toJSON(): never {
        throw new Error("no");
      },
    };
    for (const value of [circle, 10n, { deep: 10n }, () => 1, Symbol("s"), hostile]) {
      assert.throws(() => encodePayload(value), InvalidInput);
    }
  });

  test("a value that is not text cannot have a type that is not JSON", () => {
    assert.throws(() => encodePayload({ a: 1 }, "text/plain"), /its content type is text\/plain/);
  });

  test("are measured in bytes", () => {
    assert.equal(bodySize("🚗é"), 6);
    assert.equal(bodySize(new Uint8Array(7)), 7);
    assert.deepEqual(bodyBytes("é"), Buffer.from([0xc3, 0xa9]));
  });
});
