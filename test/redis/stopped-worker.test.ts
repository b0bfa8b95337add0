import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { violations } from "../sqlite/black-box/checker.ts";
import { retire } from "../sqlite/black-box/faults.ts";
import { readHistory } from "../sqlite/black-box/history.ts";
import { drained, fact, recordFinals } from "../sqlite/black-box/rounds.ts";
import { LEASE_MS, QUEUE } from "../sqlite/black-box/settings.ts";
import { now, RedisDesk } from "./desk.ts";

const DRAIN_MS = 15_000;

test(
  "a worker that was stopped for two leases learns of the loss, is refused, and the other's work is untouched",
  { timeout: 45_000 },
  async (context) => {
    const desk = await RedisDesk.withServer(context);
    const baton = await desk.connect();
    const cars = baton.queue(QUEUE);
    const [first, second] = ["first", "second"].map((name) =>
      desk.start("../black-box/worker", desk.url, desk.folder, name),
    );
    assert.ok(first !== undefined && second !== undefined);
    await Promise.all([first.next(), second.next()]);
    // Longer than the stop: one is at it when it is stopped, and the other when the first goes on.
    await cars.submit("car1", { workMs: 4 * LEASE_MS }, { id: "long" });
    const began = await fact(desk, (one) => one.type === "began");
    assert.ok("worker" in began);
    const holder = began.worker === "first" ? first : second;
    const other = began.worker === "first" ? "second" : "first";
    const stopped = now();
    holder.process.kill("SIGSTOP");
    const taken = await fact(desk, (one) => one.type === "began" && one.worker === other);
    context.diagnostic(
      `taken over ${(taken.at - stopped).toFixed(0)} ms after the stop, with a lease of ${LEASE_MS} ms`,
    );
    await wait(Math.max(0, stopped + 2 * LEASE_MS - now()));
    holder.process.kill("SIGCONT");
    const refused = await fact(desk, (one) => one.type === "refused");
    assert.ok("fence" in taken && "fence" in refused && refused.fence < taken.fence);
    await drained(baton, DRAIN_MS);
    await Promise.all([first, second].map(retire));
    assert.equal((await cars.item("long"))?.state, "done");
    assert.equal((await cars.item("long"))?.attempt, 2);
    await recordFinals(baton, desk.folder);
    const history = readHistory(desk.folder);
    assert.deepEqual(violations(history), []);
    assert.equal(history.filter(({ type }) => type === "settled").length, 1);
  },
);
