import type { Ending, Grant, NextRequest, SettleResult } from "../../engine/port.ts";
import { type ConformanceCase, casesOf, timedCasesOf } from "../case.ts";
import { equal, LeftOut, NotConforming, ok, present } from "../expect.ts";
import { LONG_LEASE_MS, type Scene } from "../scene.ts";

const DONE = { type: "done" } as const;
const NEXT: NextRequest = { worker: "next", leaseMs: LONG_LEASE_MS };
/** A turn may be over by the time that a busy machine settles. So often another key is tried. */
const MOST_TRIES = 50;

/** A settlement may ask for the key's next run. The engine may always answer without one; what it grants must be right. */
export const next: readonly ConformanceCase[] = [
  ...casesOf("G5", {
    "a key goes on with its next items, in order": async (scene) => {
      const [first, then] = await goOn(scene, ["a", "b", "c", "d"], { items: 2 });
      const ids = [then.item, ...(then.behind ?? [])].map(({ id }) => id.slice(0, 1));
      equal(ids, scene.engine.runs === true ? ["b", "c"] : ["b"], "The items of the next run");
      equal(
        [then.item.attempt, then.lease.key, then.more],
        [1, first.lease.key, true],
        "Its attempt, key and whether there is more",
      );
    },

    "a more urgent item of the key comes first when the key goes on": async (scene) => {
      const hurry = (key: string): Promise<unknown> => scene.submit(key, { id: `urgent ${key}`, level: "high" });
      const [, then] = await goOn(scene, ["a", "b"], {}, hurry);
      equal(then.item.id, `urgent ${then.lease.key}`, "The next item");
    },

    "a key does not go on with an item that was tried, or given back, just now": async (scene) => {
      const retry: Ending = { type: "retry", delayMs: 0, place: "keep", failure: { message: "not yet" } };
      for (const ending of [retry, { type: "release" } as const]) {
        const grant = await begin(scene, ending.type, ["a", "b"]);
        equal(await settle(scene, grant, ending), "settled", `Settled as ${ending.type}`);
        await scene.engine.pause({ queue: scene.queue, key: ending.type, paused: true });
      }
    },
  }),

  ...casesOf("G2", {
    "a key goes on under a new lease": async (scene) => {
      const [first, then] = await goOn(scene, ["a", "b"]);
      ok(then.lease.fence > first.lease.fence, "The fence of the next run is greater");
      equal((await scene.renew(first.lease)).ok, false, "A renewal of the lease before");
      equal(await scene.settle(first, DONE), "lost", "A settlement of the lease before");
      equal((await scene.renew(then.lease)).ok, true, "A renewal of the next lease");
      await scene.done(then);
    },

    "a stale settlement does not go on": async (scene) => {
      const grant = await begin(scene, "k", ["a", "b"]);
      await scene.done(grant);
      const other = await scene.claimOne();
      equal(await settle(scene, grant), "lost", "The stale settlement");
      await scene.done(other);
    },
  }),

  ...casesOf("G4", {
    "what a key goes on with is counted as running": async (scene) => {
      const [, then] = await goOn(scene, ["a", "b"]);
      const report = await scene.find(then.item.id);
      equal([report?.state, report?.attempt, report?.running?.worker], ["running", 1, NEXT.worker], "The next item");
    },

    "a key that has no other item does not go on": async (scene) => {
      await scene.submit("k", { id: "a" });
      const grant = await scene.claimOne();
      equal(grant.more, undefined, "Whether there is more");
      equal(await settle(scene, grant), "settled", "The settlement");
    },
  }),

  ...casesOf("G6", {
    "a key that is paused does not go on": async (scene) => {
      const grant = await begin(scene, "k", ["a", "b"]);
      await scene.engine.pause({ queue: scene.queue, key: "k", paused: true });
      equal(await settle(scene, grant), "settled", "The settlement");
    },

    "no key of a queue that is paused goes on": async (scene) => {
      const grant = await begin(scene, "k", ["a", "b"]);
      await scene.engine.pause({ queue: scene.queue, paused: true });
      equal(await settle(scene, grant), "settled", "The settlement");
    },

    "a key does not go on for ever while others are ready": async (scene) => {
      let grant = await begin(
        scene,
        "k",
        Array.from({ length: 500 }, (_, index) => `i${index}`),
      );
      await scene.submit("other");
      for (let gone = 0; ; gone += 1) {
        ok(gone < 400, "A key went on 400 times in a row, and another was ready");
        const result = await settle(scene, grant);
        if (typeof result !== "object") break;
        grant = result;
        await scene.letPass(5);
      }
      equal((await scene.claimOne()).lease.key, "other", "The key that comes to its turn");
    },
  }),

  ...casesOf("G8", {
    "a key does not go on while something more urgent is ready": async (scene) => {
      const grant = await begin(scene, "k", ["a", "b"]);
      await scene.submit("other", { id: "urgent", level: "high" });
      equal(await settle(scene, grant), "settled", "The settlement");
      equal((await scene.claimOne()).item.id, "urgent", "The next item");
    },
  }),

  ...timedCasesOf("G1", {
    "a key that somebody waits to hold does not go on": async (scene) => {
      const grant = await begin(scene, "k", ["a", "b"]);
      const holding = scene.heldLater("k");
      await scene.letPass(50);
      equal(await settle(scene, grant), "settled", "The settlement");
      present(await holding, "The hold that waited");
    },
  }),
];

async function begin(scene: Scene, key: string, ids: readonly string[]): Promise<Grant> {
  for (const id of ids) await scene.submit(key, { id: `${id} of ${key}` });
  const grant = await scene.claimOne();
  equal(grant.lease.key, key, "The key");
  if (grant.more !== true) throw new LeftOut("This engine never says that a key has more: it is not asked to go on.");
  return grant;
}

async function settle(
  scene: Scene,
  grant: Grant,
  ending: Ending = DONE,
  wish: Partial<NextRequest> = {},
): Promise<SettleResult> {
  const [result] = await scene.engine.settle([{ lease: grant.lease, ending, next: { ...NEXT, ...wish } }]);
  return present(result, "A settlement has a result");
}

/** The first run of a key, and the one that it went on with. Tried on one key after the other. */
async function goOn(
  scene: Scene,
  ids: readonly string[],
  wish: Partial<NextRequest> = {},
  meanwhile: (key: string) => Promise<unknown> = () => Promise.resolve(),
): Promise<readonly [Grant, Grant]> {
  for (let number = 1; number <= MOST_TRIES; number += 1) {
    const key = `k${number}`;
    const first = await begin(scene, key, ids);
    await meanwhile(key);
    const result = await settle(scene, first, DONE, wish);
    if (typeof result === "object") return [first, result];
    equal(result, "settled", "A settlement that does not go on");
    for (const { lease } of await scene.claimReady())
      await scene.engine.settle([{ lease, ending: { type: "cancelled" } }]);
    await scene.engine.pause({ queue: scene.queue, key, paused: true });
  }
  throw new NotConforming(`Of ${MOST_TRIES} keys that had more, none went on.`);
}
