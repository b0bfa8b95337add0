/** Half a minute of the chaos run on three servers. BATON_SEED repeats a run's faults. */
import { test } from "node:test";
import { assertGood } from "./assert-good.ts";

test("nats-cluster: no fault breaks a promise", { timeout: 180_000 }, (context) => assertGood("nats-cluster", context));
