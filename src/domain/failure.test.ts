import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { describe, test } from "node:test";
import { Fatal, RetryLater } from "./errors.ts";
import { briefFailure, describeFailure, isFatal, retryAfterMs } from "./failure.ts";

describe("what a failure is described by", () => {
  test("an error: its message, its code and its stack", () => {
    const error = Object.assign(new Error("no connection"), { code: "ECONNREFUSED" });
    const failure = describeFailure(error);
    assert.equal(failure.message, "no connection");
    assert.equal(failure.code, "ECONNREFUSED");
    assert.match(failure.stack ?? "", /failure\.test/);
  });

  test("an error without a message: its name", () =>
    assert.equal(describeFailure(Object.assign(new TypeError("a"), { message: "" })).message, "TypeError"));

  test("a numeric code becomes text; any other code is left out", () => {
    assert.equal(describeFailure(Object.assign(new Error("a"), { code: 7 })).code, "7");
    assert.equal("code" in describeFailure(Object.assign(new Error("a"), { code: {} })), false);
  });

  test("what is not an error", () => {
    assert.equal(describeFailure("plain text").message, "plain text");
    assert.match(describeFailure(undefined).message, /threw undefined, which is not an Error/);
    assert.match(describeFailure(null).message, /threw null/);
    assert.match(describeFailure({ status: 500 }).message, /threw \{"status":500\}/);
  });

  test("what cannot even be shown", () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    assert.match(describeFailure(circle).message, /not an Error/);
    assert.match(describeFailure(10n).message, /not an Error/);
  });

  test("is cut before it fills the store", () => {
    const error = new Error("x".repeat(10_000));
    error.stack = "y".repeat(100_000);
    const { message, stack } = describeFailure(error);
    assert.equal(message.length, 2_001);
    assert.equal(stack?.length, 4_001);
    assert.equal(describeFailure("z".repeat(10_000)).message.length, 2_001);
  });
});

describe("what led to a failure", () => {
  test("a failed fetch says where it could not connect to", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const address = server.address();
    assert.ok(typeof address === "object" && address !== null);
    server.close();
    await once(server, "close");
    const failed = await fetch(`http://127.0.0.1:${address.port}`).then(
      () => assert.fail("Nobody listens there any more."),
      (error: unknown) => describeFailure(error),
    );
    assert.equal(failed.message, `fetch failed: connect ECONNREFUSED 127.0.0.1:${address.port}`);
    assert.equal(failed.code, "ECONNREFUSED");
  });

  test("the message has those of its causes behind it, and the code is that of the nearest that has one", () => {
    const refused = Object.assign(new Error("connect ECONNREFUSED 127.0.0.1:9"), { code: "ECONNREFUSED" });
    const failure = describeFailure(new TypeError("fetch failed", { cause: refused }));
    assert.equal(failure.message, "fetch failed: connect ECONNREFUSED 127.0.0.1:9");
    assert.equal(failure.code, "ECONNREFUSED");
    assert.deepEqual(
      failure.causes?.map(({ message, code }) => [message, code]),
      [["connect ECONNREFUSED 127.0.0.1:9", "ECONNREFUSED"]],
    );
    assert.match(failure.causes?.[0]?.stack ?? "", /ECONNREFUSED/);
    const own = Object.assign(new Error("no", { cause: refused }), { code: "E_OWN" });
    assert.equal(describeFailure(own).code, "E_OWN");
  });

  test("each of the errors of an AggregateError, also of one that says nothing itself", () => {
    const errors = [
      Object.assign(new Error("connect ECONNREFUSED ::1:9"), { code: "ECONNREFUSED" }),
      new Error("connect ECONNREFUSED 127.0.0.1:9"),
    ];
    // As Node makes them where it could connect to none of several addresses.
    const silent = Object.assign(new AggregateError(errors, "to be taken away"), { message: "" });
    assert.equal(
      describeFailure(new TypeError("fetch failed", { cause: silent })).message,
      "fetch failed: connect ECONNREFUSED ::1:9; connect ECONNREFUSED 127.0.0.1:9",
    );
    const loud = describeFailure(new AggregateError(errors, "All promises were rejected"));
    assert.equal(
      loud.message,
      "All promises were rejected: connect ECONNREFUSED ::1:9; connect ECONNREFUSED 127.0.0.1:9",
    );
    assert.equal(loud.causes?.length, 2);
    assert.equal(loud.code, "ECONNREFUSED");
  });

  test("a cause that is no error, that is said already, or that is the error itself", () => {
    assert.equal(describeFailure(new Error("no", { cause: "the disk is full" })).message, "no: the disk is full");
    assert.equal(describeFailure(new Error("no", { cause: { status: 500 } })).message, 'no: {"status":500}');
    assert.equal(describeFailure(new Error("no: because", { cause: new Error("because") })).message, "no: because");
    const circle = new Error("round");
    circle.cause = circle;
    assert.deepEqual([describeFailure(circle).message, describeFailure(circle).causes], ["round", undefined]);
    const getter = Object.defineProperty(new Error("no"), "cause", {
      get: () => {
        throw new Error("not yours");
      },
    });
    assert.equal(describeFailure(getter).message, "no");
  });

  test("is bounded in depth, in number and in bytes of UTF-8, and says that something was left out", () => {
    let chain = new Error("deepest");
    for (let depth = 0; depth < 100; depth += 1) chain = new Error(`at ${depth}`, { cause: chain });
    const deep = describeFailure(chain);
    assert.equal(deep.message, "at 99: at 98: at 97: at 96: at 95: at 94");
    assert.equal(deep.causes?.at(-1)?.message, "… and 1 more");
    const many = describeFailure(
      new AggregateError(
        Array.from({ length: 1_000 }, (_, at) => new Error(`no ${at}`)),
        "many",
      ),
    );
    assert.equal(many.causes?.length, 9);
    assert.equal(many.causes.at(-1)?.message, "… and 992 more");
    const wide = new AggregateError(
      Array.from({ length: 20 }, () => Object.assign(new Error("é".repeat(10_000)), { stack: "€".repeat(50_000) })),
      "wide",
    );
    const written = JSON.stringify(describeFailure(wide));
    assert.ok(Buffer.byteLength(written) < 13_000, `${Buffer.byteLength(written)} bytes`);
    assert.ok(written.isWellFormed() && !written.includes("\ufffd"));
  });

  test("on one line for the history of attempts", () => {
    const said = `It said: ${"é".repeat(500)}. Out of paint.`;
    const brief = briefFailure(describeFailure(Object.assign(new Error(said), { code: "E" })));
    assert.match(brief.message, /^It said: é+…é+\. Out of paint\.$/);
    assert.ok(Buffer.byteLength(brief.message) <= 503 && brief.message.isWellFormed());
    assert.deepEqual(Object.keys(brief), ["message", "code"]);
    assert.deepEqual(briefFailure({ message: "no", stack: "at a" }), { message: "no" });
  });
});

describe("a failure says what is to be done", () => {
  test("fatal by class, by code, or by a field of any error", () => {
    assert.ok(isFatal(new Fatal("bad data")));
    assert.ok(isFatal(Object.assign(new Error("bad data"), { fatal: true })));
    for (const other of [
      new Error("a"),
      Object.assign(new Error("a"), { fatal: "yes" }),
      { fatal: true },
      "FATAL",
      undefined,
    ]) {
      assert.ok(!isFatal(other));
    }
  });

  test("when to try again, in any form of a duration; a bad one is no reason to fail twice", () => {
    assert.equal(retryAfterMs(new RetryLater("10s")), 10_000);
    assert.equal(retryAfterMs(Object.assign(new Error("a"), { retryAfter: 250 })), 250);
    for (const wish of ["soon", -1, Number.NaN, undefined, {}, null]) {
      assert.equal(retryAfterMs(Object.assign(new Error("a"), { retryAfter: wish })), undefined);
    }
    assert.equal(retryAfterMs({ retryAfter: 10 }), undefined);
  });
});
