import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { InvalidInput } from "./errors.ts";
import {
  checkFlag,
  checkFunction,
  checkList,
  checkOptions,
  checkParameters,
  checkSignal,
  given,
  type OptionNames,
} from "./options.ts";

interface Options {
  readonly level?: string | undefined;
  readonly id?: string | undefined;
}

const OPTIONS: OptionNames<Options> = { level: true, id: true };
describe("options", () => {
  test("with known names are taken as they are", () => {
    for (const options of [{}, { level: "high" }, { id: undefined }, Object.assign(Object.create(null), { id: "a" })])
      assert.equal(checkOptions(options as Options, OPTIONS), options);
  });

  test("have lists of names that the compiler holds to their type", () => {
    // @ts-expect-error -- a list that lacks a name would refuse an option that there is
    const lacking: OptionNames<Options> = { level: true };
    assert.throws(() => checkOptions({ id: "a" }, lacking));
    // @ts-expect-error -- one with a name too many would accept an option that nothing reads
    const padded: OptionNames<Options> = { level: true, id: true, retries: true };
    assert.doesNotThrow(() => checkOptions({ retries: 3 } as Options, padded));
  });

  const messages: readonly (readonly [unknown, string, string])[] = [
    [{ levle: "high" }, "", 'unknown option "levle"; did you mean "level"? Nothing was done.'],
    [{ color: "red" }, "", 'unknown option "color"; known are level, id. Nothing was done.'],
    [{ levle: undefined }, "", 'unknown option "levle"; did you mean "level"? Nothing was done.'],
    [{ levle: "high" }, "retry", 'unknown option "retry.levle"; did you mean "retry.level"? Nothing was done.'],
    [{ constructor: 1 }, "", 'unknown option "constructor"; known are level, id. Nothing was done.'],
    [JSON.parse('{ "__proto__": 1 }'), "", 'unknown option "__proto__"; known are level, id. Nothing was done.'],
    ["high", "", 'options: expected an object with level, id; found "high". Nothing was done.'],
    [null, "", "options: expected an object with level, id; found null. Nothing was done."],
    [["high"], "retry", 'retry: expected an object with level, id; found ["high"]. Nothing was done.'],
    [() => "high", "", "options: expected an object with level, id; found a function. Nothing was done."],
  ];
  for (const [options, place, message] of messages) {
    test(`are refused: ${message}`, () => {
      assert.throws(() => checkOptions(options as Options, OPTIONS, place), { code: "INVALID_INPUT", message });
    });
  }

  test("of one of many say which", () => {
    try {
      checkOptions({ levle: "high" } as Options, OPTIONS);
    } catch (error) {
      assert.ok(error instanceof InvalidInput);
      assert.equal(error.at("[3]").message, '[3]: unknown option "levle"; did you mean "level"? Nothing was done.');
      assert.equal(error.at("[3]").field, "[3].levle");
    }
  });
});

test("parameters of a URL are refused likewise", () => {
  checkParameters(["prefix"], ["prefix", "replicas"]);
  assert.throws(() => checkParameters(["prefxi"], ["prefix", "replicas"]), {
    code: "INVALID_INPUT",
    message: 'unknown parameter "prefxi"; did you mean "prefix"? Nothing was done.',
  });
  assert.throws(() => checkParameters(["a"], []), {
    message: 'unknown parameter "a"; there are none here. Nothing was done.',
  });
});

test("what is undefined was not given", () => {
  assert.deepEqual(given({ a: 1, b: undefined, c: null, d: false }), { a: 1, c: null, d: false });
});

test("kinds of values", () => {
  const run = (): void => undefined;
  assert.equal(checkFunction(run, "work", "runs"), run);
  assert.throws(() => checkFunction(undefined, "work", "runs a task"), {
    message: "work: expected a function that runs a task; found nothing. Nothing was done.",
  });
  assert.equal(checkFlag(undefined, "leased"), false);
  assert.throws(() => checkFlag("no" as never, "leased"), { code: "INVALID_INPUT" });
  assert.deepEqual(checkList(["a"], "ids", "ids"), ["a"]);
  assert.throws(() => checkList("abc" as never, "ids", "ids"), { message: /ids: expected a list of ids; found "abc"/ });
  const { signal } = new AbortController();
  assert.equal(checkSignal(signal), signal);
  assert.equal(checkSignal(undefined), undefined);
  for (const wrong of [new AbortController(), "signal", null, {}])
    assert.throws(() => checkSignal(wrong as never), { code: "INVALID_INPUT", field: "signal" });
});
