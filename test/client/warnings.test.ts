import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import { connect } from "../../src/index.ts";

test(
  "where nobody listens, a result that was not kept is a warning, once for each queue",
  { timeout: 30_000 },
  async (context) => {
    const warnings: string[] = [];
    const note = ({ name, message }: Error): void => {
      if (name === "BatonWarning") warnings.push(message);
    };
    process.on("warning", note);
    context.after(() => process.off("warning", note));
    const baton = await connect("memory:");
    const cars = baton.queue<number>("cars");
    const heard = once(process, "warning");
    for (const key of ["a", "b", "c"]) await cars.submit(key, 1);
    const worker = cars.work(() => () => "a function", { untilEmpty: true });
    await Promise.all([heard, worker.stopped]);
    await baton.close();
    assert.equal(warnings.length, 1);
    assert.match(
      warnings[0] ?? "",
      /^The result of item @\S+ \(queue cars, key a\) was not kept: JSON cannot carry it: it is a function\. The item is done/,
    );
  },
);
