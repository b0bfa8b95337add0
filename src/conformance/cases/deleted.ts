import type { Engine, SubmitResult } from "../../engine/port.ts";
import { type ConformanceCase, casesOf } from "../case.ts";
import { atMost, equal, ok, refusedWith } from "../expect.ts";
import type { Scene } from "../scene.ts";

/** So many submissions race with a deletion. */
const RACING = 40;

/** How often a queue is deleted while somebody submits to it. */
const ROUNDS = 3;
const MOST_TRIES = 20;

const MISSING = "QUEUE_MISSING";

function deleted({ queue }: Scene, engine: Engine, force = false): Promise<boolean> {
  return engine.deleteQueue({ queue, force });
}

/** A refusal may be that of the call or that of the entry. */
async function refusedSubmission(scene: Scene, engine: Engine, promise: string): Promise<void> {
  const submitting = scene.trySubmit("k", {}, engine).then((result) => {
    if (!result.ok) throw result.error;
    return result;
  });
  await refusedWith(submitting, MISSING, promise);
}

const DELETED: Parameters<typeof casesOf>[1] = {
  "an empty queue is deleted with what was remembered of it, and made anew by the next who declares it": async (
    scene,
  ) => {
    const { engine, queue } = scene;
    await scene.submit("k", { id: "item" });
    const before = await scene.claimOne();
    await scene.done(before);
    await engine.pause({ queue, key: "k", paused: true });
    equal(await deleted(scene, engine), true, "Deleting an empty queue");
    equal(await engine.queues({ queue }), [], "The queue");
    equal(await deleted(scene, engine), false, "Deleting it again");
    await refusedSubmission(scene, engine, "A submission to a queue that was deleted");
    await refusedWith(scene.claim(), MISSING, "A claim in a queue that was deleted");
    await refusedWith(engine.keys({ queue, limit: 10 }), MISSING, "Listing the keys of a queue that was deleted");
    await engine.declare({ queue });
    equal(await scene.find("item"), undefined, "The item of before");
    equal((await scene.submit("k", { id: "item" })).duplicate, false, "Whether its id is known");
    const grant = await scene.claimOne();
    ok(grant.lease.fence > before.lease.fence, "Fences of a queue that is made anew go on above those of before");
    await scene.done(grant);
  },

  "a queue that is made anew may have other levels": async (scene) => {
    const { engine, queue } = scene;
    equal(await deleted(scene, engine), true, "Deleting an empty queue");
    const levels = ["now", "later"];
    equal((await engine.declare({ queue, levels })).levels, levels, "The levels");
    const accepted = await scene.submit("k", { level: "now" });
    equal(accepted.level, "now", "The level of an item");
  },

  "a queue that is not empty is not deleted": async (scene) => {
    const { engine, queue } = scene;
    const refused = (what: string): Promise<void> =>
      refusedWith(deleted(scene, engine), "QUEUE_NOT_EMPTY", `Deleting a queue with ${what}`);
    await scene.submit("k", { id: "item" });
    await refused("an item that waits");
    const grant = await scene.claimOne();
    await refused("an item in work");
    await scene.finish(grant, { type: "dead", failure: { message: "no use" } });
    await refused("a dead letter");
    equal(await engine.revive({ queue, action: "drop" }), 1, "Dropped dead letters");
    await scene.submit("k", { id: "delayed", delayMs: 3_600_000 });
    await refused("a delayed item");
    equal(await engine.cancel({ queue, id: "delayed" }), "cancelled", "Cancelling the delayed item");
    const lease = await scene.hold("k");
    ok(lease !== undefined, "A free key can be held");
    await refused("a hold");
    await scene.finish({ lease }, { type: "release" });
    equal((await scene.find("item"))?.state, "dead", "The item that was a dead letter");
    equal(await deleted(scene, engine), true, "Deleting it when it is empty");
  },

  "with force a queue is deleted with all that is in it": async (scene) => {
    const { engine, queue } = scene;
    for (const key of ["dead", "running"]) await scene.submit(key, { id: key });
    const [dead, running] = await scene.claimCount(2);
    ok(dead !== undefined && running !== undefined, "Two keys are ready");
    await scene.finish(dead, { type: "dead", failure: { message: "no use" } });
    await scene.submit("running", { id: "behind" });
    await scene.submit("other", { id: "waiting" });
    await scene.submit("other", { id: "delayed", delayMs: 3_600_000 });
    const beside = await scene.newQueue();
    await scene.submit("other", { queue: beside, id: "beside" });
    equal(await deleted(scene, engine, true), true, "Deleting a queue with force");
    equal((await scene.renew(running.lease)).ok, false, "A lease of the queue");
    equal(await scene.settle(running, { type: "done" }), "lost", "Settling under a lease of the queue");
    await engine.declare({ queue });
    const { waiting, delayed, running: leased, dead: letters } = await scene.report();
    equal([waiting, delayed, leased, letters], [0, 0, 0, 0], "What is in the queue that was made anew");
    for (const id of ["dead", "running", "behind", "waiting", "delayed"])
      equal(await scene.find(id), undefined, `The item ${id}`);
    await scene.submit("running", { id: "running" });
    const anew = await scene.claimOne();
    ok(anew.lease.fence > running.lease.fence, "Fences of a queue that is made anew go on above those of before");
    equal(await scene.settle(running, { type: "done" }), "lost", "Settling under the old lease");
    await scene.done(anew);
    equal((await scene.claimOne({ queue: beside })).item.id, "beside", "An item of another queue");
  },

  "those who wait in a queue that is deleted are told, in other handles too": async (scene) => {
    const { engine } = scene;
    const other = await scene.open();
    await scene.submit("k", { id: "item" });
    await scene.claimOne();
    const waits = [scene.outcome("item"), scene.outcome("item", other), scene.heldLater("k", 60_000, other)];
    const told = waits.map((wait) => refusedWith(wait, MISSING, "Waiting in a queue that was deleted"));
    for (const handle of [engine, other])
      told.push(
        refusedWith(scene.claim({ engine: handle }), MISSING, "A claim that waits in a queue that was deleted"),
      );
    equal(await deleted(scene, engine, true), true, "Deleting a queue with force");
    await Promise.all(told);
  },

  "other handles are refused until they declare it again": async (scene) => {
    const { engine, queue } = scene;
    const other = await scene.open();
    await scene.submit("k", { id: "first" }, other);
    await scene.done(await scene.claimOne({ engine: other }), other);
    equal(await deleted(scene, engine), true, "Deleting an empty queue");
    await refusedSubmission(scene, other, "A submission by a handle that does not know of it");
    equal(await engine.queues({ queue }), [], "The queue");
    await other.declare({ queue });
    await scene.submit("k", { id: "second" }, other);
    await engine.declare({ queue });
    const grant = await scene.claimOne();
    equal(grant.item.id, "second", "The item that is handed out");
    await scene.done(grant);
  },

  "what is submitted to a queue that is deleted and declared anew, again and again, is not lost, and looks go on":
    async (scene) => {
      const { engine, queue } = scene;
      const [submitter, looker] = [await scene.open(), await scene.open()];
      await submitter.declare({ queue });
      for (let round = 0; round < ROUNDS; round += 1) {
        const id = `item${round}`;
        const accepted = async (): Promise<void> => {
          for (let tries = 0; tries < MOST_TRIES; tries += 1) {
            const submitting = scene.trySubmit("k", { id }, submitter);
            const result = await submitting.catch(() => undefined);
            if (result?.ok === true) return;
            if (result === undefined) await refusedWith(submitting, MISSING, "A submission to a queue that is deleted");
            else equal(result.error.code, MISSING, "Why a submission is refused");
            await submitter.declare({ queue });
          }
          ok(false, "A submission is accepted when the queue is declared anew");
        };
        const deleting = deleted(scene, engine).catch(() => false);
        const looks = [looker.queues({}), looker.check()].map((look) => look.then(() => undefined));
        await Promise.all([accepted(), deleting, ...looks]);
        await engine.declare({ queue });
        const grant = await scene.claimOne();
        equal(grant.item.id, id, "The item that is handed out");
        await scene.done(grant);
      }
    },

  "nothing that is accepted while a queue is deleted is lost": async (scene) => {
    const { engine, queue } = scene;
    const other = await scene.open();
    const submitting = Array.from({ length: RACING }, async (_, index): Promise<SubmitResult | undefined> => {
      try {
        return await scene.trySubmit(`key${index}`, { id: `item${index}` }, other);
      } catch {
        return undefined;
      }
    });
    const deleting = deleted(scene, engine).catch(() => false);
    const accepted = (await Promise.all(submitting)).filter((result) => result?.ok === true);
    const isDeleted = await deleting;
    const [report] = await engine.queues({ queue });
    equal(report?.waiting ?? 0, accepted.length, `Items in the queue (deleted: ${String(isDeleted)})`);
    atMost(isDeleted ? accepted.length : 0, 0, "Items that were accepted of a queue that was deleted");
  },
};

export const deletedQueues: readonly ConformanceCase[] = casesOf("G4", DELETED);
