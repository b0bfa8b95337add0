import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidInput } from "../domain/errors.ts";
import { takeWake } from "./wake-url.ts";

test("a URL without a wake stays as it is", () => {
  for (const url of ["sqlite:work.db", "sqlite:a%20b?synchronous=off", "postgres://a:b%3F@h/db?x=1&y=%26"])
    assert.deepEqual(takeWake(url), { url });
});

test("a wake is taken off, wherever it stands", () => {
  assert.deepEqual(takeWake("sqlite:work.db?wake=nats://localhost:4222"), {
    url: "sqlite:work.db",
    wake: "nats://localhost:4222",
  });
  assert.deepEqual(takeWake("sqlite:w.db?synchronous=off&wake=redis%3A%2F%2Fu%3Ap%26q@h&wakePrefix=cars&more=1"), {
    url: "sqlite:w.db?synchronous=off&more=1",
    wake: "redis://u:p&q@h",
    wakePrefix: "cars",
  });
});

test("a wake's URL may have parameters of its own", () => {
  assert.equal(takeWake("sqlite:w.db?wake=nats://h?prefix=x").wake, "nats://h?prefix=x");
  assert.equal(takeWake("sqlite:w.db?wake=nats://h?prefix%3Dx%26token%3Dy").wake, "nats://h?prefix=x&token=y");
});

test("a wake's URL that is not written as a parameter is refused without showing what is in it", () => {
  assert.throws(
    () => takeWake("sqlite:w.db?wake=nats://ada:secret%@h"),
    (error: unknown) =>
      error instanceof InvalidInput && /^wake: .*%25/.test(error.message) && !error.message.includes("secret"),
  );
  assert.throws(() => takeWake("sqlite:w.db?wakePrefix=a%"), /wakePrefix: .*%25/);
});
