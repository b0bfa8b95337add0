/** Half a minute of the chaos run on Redis. BATON_SEED repeats a run's faults. */
import { test } from "node:test";
import { assertGood } from "./assert-good.ts";

test("redis: no fault breaks a promise", { timeout: 120_000 }, (context) => assertGood("redis", context));
