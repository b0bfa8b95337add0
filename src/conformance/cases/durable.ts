import { type ConformanceCase, casesOf, restartCasesOf } from "../case.ts";
import { atLeast, equal, ok, refusedWith } from "../expect.ts";
import { keysOf, textOf } from "../scene.ts";

export const durable: readonly ConformanceCase[] = [
  ...casesOf("G3", {
    "what was accepted outlives the handle that submitted it": async (scene) => {
      const other = await scene.open();
      await scene.submit("k", { text: "kept" }, other);
      await scene.close(other);
      equal(textOf(await scene.claimOne()), "kept", "The item of a handle that is closed");
    },

    "a lease outlives the handle that took it": async (scene) => {
      const other = await scene.open();
      await scene.submit("k");
      const before = scene.clock.monotonic();
      await scene.claimOne({ engine: other, leaseMs: scene.leaseMs });
      await scene.close(other);
      const again = await scene.claimOne();
      atLeast(
        scene.clock.monotonic() - before,
        scene.leaseMs - 5,
        "Milliseconds until the key of a closed handle is free",
      );
      equal(again.item.attempt, 2, "The attempt after the holder went away");
    },
  }),

  ...restartCasesOf("G3", {
    "accepted items survive a restart, in their order": async (scene) => {
      const bytes = new Uint8Array([0, 255, 10, 13]);
      await scene.submit("k", { text: "first", headers: { trace: "1" } });
      await scene.submit("k", { payload: { type: "image/x", body: bytes }, level: "low" });
      await scene.submit("k", { text: "second" });
      await scene.submit("other", { level: "high" });
      await scene.restart();
      const report = await scene.report();
      equal(report.waiting, 4, "Items that wait after the restart");
      equal((await scene.claimOne()).item.key, "other", "The urgent item goes first after the restart");
      const first = await scene.claimOne();
      equal([textOf(first), first.item.headers], ["first", { trace: "1" }], "The first item of the key");
      await scene.done(first);
      const second = await scene.claimOne();
      equal(textOf(second), "second", "The second item of the key");
      await scene.done(second);
      const { payload, level } = (await scene.claimOne()).item;
      ok(payload.body instanceof Uint8Array, "Bytes come back as bytes");
      equal([payload.type, [...payload.body], level], ["image/x", [...bytes], "low"], "The third item of the key");
    },

    "a large backlog survives a restart": async (scene) => {
      const items = Array.from({ length: 300 }, (_, index) => scene.entry(`k${index % 30}`, { text: String(index) }));
      await scene.engine.submit(items);
      await scene.restart();
      const found = new Set<string>();
      for (let round = 0; round < 10; round += 1) {
        const grants = await scene.claimReady();
        for (const grant of grants) found.add(textOf(grant));
        await scene.engine.settle(grants.map(({ lease }) => ({ lease, ending: { type: "done" } as const })));
      }
      equal(found.size, 300, "Items found after the restart");
    },

    "delayed items survive a restart": async (scene) => {
      const { id } = await scene.submit("soon", { delayMs: 200, id: "soon" });
      await scene.submit("late", { delayMs: 3_600_000 });
      const dueAt = (await scene.find(id))?.dueAt;
      await scene.restart();
      equal((await scene.claimOne()).item.key, "soon", "The item that came due");
      ok(dueAt === undefined || scene.clock.wall() >= dueAt, "A delayed item does not arrive before it is due");
      equal((await scene.report()).delayed, 1, "Items that are still delayed");
    },

    "attempts and back-offs survive a restart": async (scene) => {
      await scene.submit("k", { id: "item" });
      await scene.retry(await scene.claimOne());
      await scene.retry(await scene.claimOne(), 3_600_000);
      await scene.restart();
      equal(await scene.claimReady(), [], "An item that waits out its back-off");
      const report = await scene.find("item");
      equal([report?.state, report?.attempt], ["waiting", 2], "The item after the restart");
      ok((report?.dueAt ?? 0) > scene.clock.wall(), "The back-off lasts as long as it did");
    },

    "dead letters survive a restart": async (scene) => {
      await scene.submit("k", { text: "broken" });
      await scene.finish(await scene.claimOne(), { type: "dead", failure: { message: "bad data", code: "E1" } });
      await scene.restart();
      const [letter] = await scene.engine.dead({ queue: scene.queue, limit: 10 });
      equal([letter?.key, letter?.failure.message, letter?.failure.code], ["k", "bad data", "E1"], "The dead letter");
      equal(await scene.engine.revive({ queue: scene.queue, action: "retry" }), 1, "Dead letters retried");
      equal(textOf(await scene.claimOne()), "broken", "The dead letter runs again");
    },

    "pauses survive a restart": async (scene) => {
      const whole = await scene.newQueue();
      await scene.engine.pause({ queue: whole, paused: true });
      await scene.engine.pause({ queue: scene.queue, key: "k", paused: true });
      await scene.submit("k");
      await scene.submit("other");
      await scene.restart();
      equal(keysOf(await scene.claimReady()), ["other"], "Keys handed out of a queue with a paused key");
      equal((await scene.report(whole)).paused, true, "The paused queue");
      await scene.engine.pause({ queue: scene.queue, key: "k", paused: false });
      equal((await scene.claimOne()).item.key, "k", "The key that goes on");
    },

    "a lease does not let go of its key in a restart": async (scene) => {
      await scene.submit("k", { id: "item" });
      const { lease } = await scene.claimOne();
      await scene.restart();
      equal(await scene.claimReady(), [], "A key in work is not ready after a restart");
      equal((await scene.find("item"))?.running?.fence, lease.fence, "The fence under which the item runs");
      equal(
        await scene.settle({ lease }, { type: "done" }),
        "settled",
        "Settling under a lease from before the restart",
      );
    },

    "receipts and outcomes survive a restart": async (scene) => {
      const live = await scene.submit("k", { id: "live" });
      const ended = await scene.submit("k2", { id: "ended" });
      const grants = await scene.claimCount(2);
      for (const grant of grants) {
        if (grant.item.id === "ended")
          await scene.finish(grant, { type: "done", result: { type: "text/plain", body: "fine" } });
        else await scene.finish(grant, { type: "release" });
      }
      await scene.restart();
      equal(await scene.submit("x", { id: "live" }), { ...live, duplicate: true }, "The receipt of an item that waits");
      equal(
        await scene.submit("x", { id: "ended" }),
        { ...ended, duplicate: true },
        "The receipt of an item that ended",
      );
      const outcome = await scene.outcome("ended");
      equal([outcome?.state, outcome?.result?.body], ["done", "fine"], "The outcome");
    },

    "levels survive a restart": async (scene) => {
      const queue = await scene.newQueue(undefined, ["now", "later"]);
      await scene.restart();
      equal((await scene.engine.declare({ queue })).levels, ["now", "later"], "The stored levels");
      await refusedWith(
        scene.engine.declare({ queue, levels: ["later", "now"] }),
        "LEVELS_DIFFER",
        "Declaring other levels",
      );
    },
  }),
];
