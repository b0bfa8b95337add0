import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runInNewContext } from "node:vm";
import { describeFailure, isFatal, retryAfterMs } from "./failure.ts";
import { encodePayload } from "./payload.ts";
import { isBytes, isError } from "./realms.ts";

/** As jsdom makes them: an object whose prototype says what it is. */
class ForeignException {
  readonly message = "aborted";
  readonly [Symbol.toStringTag] = "DOMException";
}

function elsewhere(code: string): unknown {
  return runInNewContext(code);
}

describe("an error", () => {
  const errors: readonly (readonly [string, unknown])[] = [
    ["of this realm", new TypeError("here")],
    ["of another realm", elsewhere("new TypeError('there')")],
    ["that was cloned", structuredClone(new RangeError("copied"))],
    ["of the platform", new DOMException("aborted", "AbortError")],
    ["of a platform that is made by hand", new ForeignException()],
    ["of an old class", Object.setPrototypeOf({}, Error.prototype)],
  ];
  for (const [name, error] of errors) test(name, () => assert.equal(isError(error), true, "it is taken for an error"));

  const others = [undefined, null, "Error", 7, {}, { message: "no" }, () => undefined, elsewhere("({ stack: '' })")];
  test("is nothing else", () => {
    for (const other of others) assert.equal(isError(other), false, "it is not taken for an error");
  });

  test("of another realm is told as one, and its wishes are heard", () => {
    const thrown = elsewhere(
      "Object.assign(new TypeError('there'), { fatal: true, retryAfter: '2s', code: 'E_THERE' })",
    );
    const { message, code, stack } = describeFailure(thrown);
    assert.deepEqual({ message, code }, { message: "there", code: "E_THERE" });
    assert.match(stack ?? "", /^TypeError: there/);
    assert.equal(isFatal(thrown), true, "it ends the process");
    assert.equal(retryAfterMs(thrown), 2_000);
  });
});

test("bytes of another realm are bytes", () => {
  const bytes = elsewhere("new Uint8Array([1, 2, 3])");
  assert.equal(isBytes(bytes), true, "bytes of another realm are bytes");
  assert.equal(encodePayload(bytes).type, "application/octet-stream");
  for (const other of [Buffer.from("a"), new Uint8Array()]) assert.equal(isBytes(other), true, "these are bytes");
  for (const other of [[1], new Uint16Array(1), new ArrayBuffer(1), "bytes", { [Symbol.toStringTag]: "Uint8Array" }])
    assert.equal(isBytes(other), false, "these are no bytes");
});
