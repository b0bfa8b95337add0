/** Half a minute of the chaos run on one file. BATON_SEED repeats a run's faults. */
import { test } from "node:test";
import { assertGood } from "./assert-good.ts";

test("sqlite: no fault breaks a promise", { timeout: 120_000 }, (context) => assertGood("sqlite", context));
