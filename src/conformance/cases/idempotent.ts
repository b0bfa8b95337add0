import type { Ending } from "../../engine/port.ts";
import { type ConformanceCase, casesOf, restartCasesOf } from "../case.ts";
import { equal, ok } from "../expect.ts";
import { keysOf, type Scene } from "../scene.ts";

export const idempotent: readonly ConformanceCase[] = [
  ...casesOf("G9", {
    "the same id gives the first receipt, whatever else is said": async (scene) => {
      const first = await scene.submit("k", { id: "order", text: "first", level: "high" });
      equal(first.duplicate, false, "The first submission is a duplicate");
      const again = await scene.submit("other", {
        id: "order",
        text: "second",
        level: "low",
        delayMs: 5_000,
        mode: "latest",
      });
      equal(again, { ...first, duplicate: true }, "The second receipt");
      const nonsense = await scene.submit("other", { id: "order", level: "unheard-of" });
      equal(nonsense, { ...first, duplicate: true }, "The third receipt");
      const ready = await scene.claimReady();
      equal(
        ready.map(({ item }) => [item.key, item.payload.body]),
        [["k", "first"]],
        "What is ready",
      );
    },

    "many submissions of one id at once are one item": async (scene) => {
      const handles = [scene.engine, await scene.open()];
      const submissions = Array.from({ length: 10 }, (_, index) => `k${index}`).flatMap((key) =>
        handles.map((engine) => scene.submit(key, { id: "order" }, engine)),
      );
      const receipts = await Promise.all(submissions);
      equal(receipts.filter(({ duplicate }) => !duplicate).length, 1, "Receipts that are the first");
      const distinct = new Set(receipts.map(({ id, key, level, at }) => JSON.stringify({ id, key, level, at })));
      equal(distinct.size, 1, "Different receipts for one id");
      equal((await scene.report()).waiting, 1, "Items that wait");
    },

    "an id twice in one batch is one item": async (scene) => {
      const batch = ["order", "other", "order"].map((id) => scene.entry("k", { id }));
      const results = await scene.engine.submit(batch);
      const duplicates = results.map((result) => result.ok && result.accepted.duplicate);
      equal(duplicates, [false, false, true], "Duplicates in the batch");
      equal((await scene.report()).waiting, 2, "Items that wait");
    },

    "an id is known while its item is in work": async (scene) => {
      const first = await scene.submit("k", { id: "order" });
      await scene.claimOne();
      equal(await scene.submit("k", { id: "order" }), { ...first, duplicate: true }, "The second receipt");
      equal((await scene.report()).waiting, 0, "Items that wait");
    },

    "an id is known after its item is done": async (scene) => {
      await expectKnownAfter(scene, { type: "done" });
    },

    "an id is known after its item is dead": async (scene) => {
      await expectKnownAfter(scene, { type: "dead", failure: { message: "no" } });
    },

    "an id is known after its item was cancelled": async (scene) => {
      await expectKnownAfter(scene, { type: "cancelled" });
    },

    "an id is known after its item was replaced": async (scene) => {
      const first = await scene.submit("k", { id: "order" });
      await scene.submit("k", { mode: "latest", text: "newest" });
      equal(await scene.submit("k", { id: "order" }), { ...first, duplicate: true }, "The second receipt");
    },

    "an id means nothing in another queue": async (scene) => {
      const queue = await scene.newQueue();
      await scene.submit("k", { id: "order" });
      const other = await scene.submit("k2", { id: "order", queue });
      equal([other.duplicate, other.key], [false, "k2"], "The receipt in another queue");
      await scene.done(await scene.claimOne());
      equal((await scene.find("order", queue))?.state, "waiting", "The item in the other queue");
      equal((await scene.find("order"))?.state, "done", "The item in this queue");
    },

    "items without id are never taken for one another": async (scene) => {
      const entries = Array.from({ length: 20 }, () => scene.entry("k", { text: "same" }));
      const results = await scene.engine.submit(entries);
      const ids = results.map((result) => (result.ok && !result.accepted.duplicate ? result.accepted.id : "refused"));
      equal(new Set(ids).size, 20, "Different ids");
      ok(
        ids.every((id) => id.startsWith("@")),
        "Given ids begin with @",
      );
      equal((await scene.report()).waiting, 20, "Items that wait");
    },

    "an id whose submission was refused can be used": async (scene) => {
      await scene.submit("k");
      const refused = await scene.trySubmit("k", { id: "order", keyLimit: 1 });
      equal(refused.ok, false, "A submission beyond the limit is accepted");
      equal(await scene.find("order"), undefined, "The item that was refused");
      const accepted = await scene.submit("k", { id: "order", keyLimit: 2 });
      equal(accepted.duplicate, false, "The second submission is a duplicate");
    },

    "an id that is known is not refused when the key is full or busy": async (scene) => {
      const first = await scene.submit("k", { id: "order" });
      const full = await scene.submit("k", { id: "order", keyLimit: 1, queueLimit: 1 });
      const strict = await scene.submit("k", { id: "order", mode: "strict" });
      equal(
        [full, strict],
        [
          { ...first, duplicate: true },
          { ...first, duplicate: true },
        ],
        "The receipts",
      );
    },

    "ids are compared exactly": async (scene) => {
      const ids = [
        "order",
        "Order",
        "order ",
        "örder",
        "o\u0308rder",
        "order*",
        "__proto__",
        "constructor",
        "order.1",
        "🚗",
      ];
      for (const id of ids)
        equal((await scene.submit(id, { id })).duplicate, false, `Id ${JSON.stringify(id)} is a duplicate`);
      const ready = keysOf(await scene.claimReady());
      equal(ready.toSorted(), ids.toSorted(), "The items");
      for (const id of ids) equal((await scene.find(id))?.key, id, `The item with id ${JSON.stringify(id)}`);
    },
  }),

  ...restartCasesOf("G9", {
    "an id is known after a restart": async (scene) => {
      const waiting = await scene.submit("k", { id: "waiting" });
      const done = await scene.submit("k2", { id: "done" });
      for (const grant of await scene.claimCount(2)) {
        await scene.finish(grant, grant.item.id === "done" ? { type: "done" } : { type: "release" });
      }
      await scene.restart();
      equal(await scene.submit("x", { id: "waiting" }), { ...waiting, duplicate: true }, "The receipt of what waits");
      equal(await scene.submit("x", { id: "done" }), { ...done, duplicate: true }, "The receipt of what is done");
      equal((await scene.report()).waiting, 1, "Items that wait");
    },
  }),
];

async function expectKnownAfter(scene: Scene, ending: Ending): Promise<void> {
  const first = await scene.submit("k", { id: "order" });
  await scene.finish(await scene.claimOne(), ending);
  equal(await scene.submit("k", { id: "order" }), { ...first, duplicate: true }, "The second receipt");
  equal(await scene.claimReady(), [], "What is ready");
}
