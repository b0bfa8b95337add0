/** Half a minute of the chaos run on each of the stores that the lot falls on. BATON_SEED repeats a run's faults. */
import { describe, test } from "node:test";
import { draw } from "../test/kit/draw.ts";
import { assertGood } from "./assert-good.ts";
import type { Store } from "./scene.ts";

const STORES: readonly Store[] = ["sqlite", "nats", "nats-cluster", "postgres", "redis"];
const PLAYED = 1;

describe("no fault breaks a promise", { concurrency: 1 }, () => {
  for (const store of draw.some("stores under chaos", STORES, PLAYED))
    test(store, { timeout: 180_000 }, (context) => assertGood(store, context));
});
