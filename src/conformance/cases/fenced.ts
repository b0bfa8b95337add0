import type { Ending, Lease } from "../../engine/port.ts";
import { type ConformanceCase, casesOf, restartCasesOf } from "../case.ts";
import { equal, ok, present } from "../expect.ts";
import type { Scene } from "../scene.ts";

const STALE_ENDINGS: readonly Ending[] = [
  { type: "done" },
  { type: "retry", delayMs: 0, place: "keep", failure: { message: "late" } },
  { type: "retry", delayMs: 0, place: "yield", failure: { message: "late" } },
  { type: "dead", failure: { message: "late" } },
  { type: "cancelled" },
  { type: "release" },
];

export const fenced: readonly ConformanceCase[] = [
  ...casesOf("G2", {
    "fences rise from item to item, also when the key was idle between": async (scene) => {
      const fences: number[] = [];
      for (let count = 0; count < 5; count += 1) {
        await scene.submit("k");
        const grant = await scene.claimOne();
        fences.push(grant.lease.fence);
        await scene.done(grant);
        equal((await scene.engine.keys({ queue: scene.queue, limit: 10 })).length, 0, "Keys that have something");
      }
      expectRising(fences);
    },

    "fences rise over retry, release, hold and dead letters": async (scene) => {
      await scene.submit("k");
      const first = await scene.claimOne();
      await scene.retry(first);
      const second = await scene.claimOne();
      await scene.finish(second, { type: "release" });
      const held = present(await scene.hold("k"), "A released key can be held");
      await scene.finish({ lease: held }, { type: "release" });
      const third = await scene.claimOne();
      await scene.finish(third, { type: "dead", failure: { message: "no" } });
      await scene.engine.revive({ queue: scene.queue, action: "retry" });
      const fourth = await scene.claimOne();
      expectRising([first.lease, second.lease, held, third.lease, fourth.lease].map(({ fence }) => fence));
    },

    "fences rise when a lease runs out": async (scene) => {
      await scene.submit("k");
      const first = await scene.claimOne({ leaseMs: scene.leaseMs });
      const second = await scene.claimOne({ leaseMs: scene.leaseMs });
      const third = await scene.claimOne();
      expectRising([first.lease.fence, second.lease.fence, third.lease.fence]);
    },

    "fences rise for each key across two handles": async (scene) => {
      const handles = [scene.engine, await scene.open()];
      const fences: number[] = [];
      for (let count = 0; count < 6; count += 1) {
        const engine = present(handles[count % 2], "There are two handles");
        await scene.submit("k", {}, engine);
        const grant = await scene.claimOne({ engine });
        fences.push(grant.lease.fence);
        await scene.done(grant, engine);
      }
      expectRising(fences);
    },

    "a stale settlement is lost and changes nothing": async (scene) => {
      const taken = await takeOver(scene, STALE_ENDINGS.length);
      for (const [index, ending] of STALE_ENDINGS.entries()) {
        const { stale, fresh, id } = present(taken[index], "A key that was taken over");
        const result = await scene.settle({ lease: stale }, ending);
        equal(result, "lost", `Settling as ${ending.type} under a lease that is gone`);
        await expectRunning(scene, id, fresh);
        await scene.finish({ lease: fresh }, { type: "done" });
        equal((await scene.find(id))?.state, "done", "The item after its new holder settled");
      }
    },

    "a stale renewal is refused and changes nothing": async (scene) => {
      const { stale, fresh, id } = await takeOverOne(scene);
      ok(!(await scene.renew(stale, { progress: 0.9 })).ok, "A lease that is gone cannot be renewed");
      const running = (await scene.find(id))?.running;
      equal(running?.progress, undefined, "Progress of the new holder after a stale renewal");
      await expectRunning(scene, id, fresh);
      ok((await scene.renew(fresh)).ok, "The new holder can renew");
    },

    "a lease is settled once": async (scene) => {
      await scene.submit("k", { text: "first" });
      await scene.submit("k", { text: "second" });
      const first = await scene.claimOne();
      await scene.done(first);
      equal(await scene.settle(first, { type: "done" }), "lost", "Settling a second time");
      const second = await scene.claimOne();
      equal(await scene.settle(first, { type: "done" }), "lost", "Settling a third time, while the next item runs");
      ok(!(await scene.renew(first.lease)).ok, "A settled lease cannot be renewed");
      await scene.done(second);
    },

    "a lease that ran out is lost, also when nobody took the key": async (scene) => {
      const { id } = await scene.submit("k", { id: "item" });
      const grant = await scene.claimOne({ leaseMs: scene.leaseMs });
      await scene.engine.pause({ queue: scene.queue, key: "k", paused: true });
      await scene.letLeasesRunOut();
      ok(!(await scene.renew(grant.lease)).ok, "A lease that ran out cannot be renewed");
      equal(await scene.settle(grant, { type: "done" }), "lost", "Settling under a lease that ran out");
      equal((await scene.find(id))?.state, "waiting", "The item whose lease ran out");
    },

    "a stale hold does not end the next one": async (scene) => {
      const stale = present(await scene.hold("k", scene.leaseMs), "An idle key can be held");
      await scene.letLeasesRunOut();
      const fresh = present(await scene.hold("k"), "A key whose hold ran out can be held");
      expectRising([stale.fence, fresh.fence]);
      equal(await scene.settle({ lease: stale }, { type: "release" }), "lost", "Releasing a hold that ran out");
      ok(!(await scene.renew(stale)).ok, "A hold that ran out cannot be renewed");
      equal(await scene.hold("k"), undefined, "A hold on a key that is still held");
      ok((await scene.renew(fresh)).ok, "The current hold can be renewed");
    },

    "who lost a lease to another is told": async (scene) => {
      const other = await scene.open();
      const told = Promise.withResolvers<Lease>();
      await scene.submit("k");
      const stale = await scene.claimOne({ leaseMs: scene.leaseMs, lost: told.resolve });
      const fresh = await scene.claimOne({ engine: other });
      const { queue, key, fence } = await told.promise;
      equal({ queue, key, fence }, leaseName(stale.lease), "The lease that its holder is told to have lost");
      equal(await scene.settle(fresh, { type: "done" }, other), "settled", "Settling by the new holder");
    },

    "who lost a hold to another is told": async (scene) => {
      const other = await scene.open();
      const told = Promise.withResolvers<Lease>();
      const { queue, leaseMs } = scene;
      const request = { queue, key: "k", worker: "holder", leaseMs, signal: scene.patience(), lost: told.resolve };
      const stale = present(await scene.engine.hold(request), "An idle key can be held");
      present(await scene.heldLater("k", undefined, other), "A key whose hold ran out can be held");
      const { key, fence } = await told.promise;
      equal({ queue, key, fence }, leaseName(stale), "The hold that its holder is told to have lost");
    },

    "who renews, settles and lets go in time is told of no loss": async (scene) => {
      const other = await scene.open();
      let told = 0;
      const lost = (): void => void (told += 1);
      await scene.submit("k");
      await scene.submit("k");
      const first = await scene.claimOne({ leaseMs: scene.leaseMs, lost });
      ok((await scene.renew(first.lease)).ok, "A lease that did not run out can be renewed");
      await scene.letLeasesRunOut();
      await scene.done(first);
      const second = await scene.claimOne({ engine: other, lost });
      await scene.finish(second, { type: "release" }, other);
      await scene.done(await scene.claimOne({ lost }));
      await scene.letLeasesRunOut();
      equal(told, 0, "Losses of somebody who lost nothing");
    },

    "settlements of one batch are judged one by one": async (scene) => {
      const { stale, fresh } = await takeOverOne(scene);
      await scene.submit("other");
      const other = await scene.claimOne();
      const results = await scene.engine.settle([
        { lease: stale, ending: { type: "done" } },
        { lease: other.lease, ending: { type: "done" } },
        { lease: fresh, ending: { type: "done" } },
        { lease: fresh, ending: { type: "done" } },
      ]);
      equal(results, ["lost", "settled", "settled", "lost"], "Results of a batch, in its order");
    },
  }),

  ...restartCasesOf("G2", {
    "fences rise over a restart": async (scene) => {
      const fences: number[] = [];
      for (let count = 0; count < 3; count += 1) {
        await scene.submit("k");
        const grant = await scene.claimOne();
        fences.push(grant.lease.fence);
        await scene.done(grant);
        await scene.restart();
      }
      expectRising(fences);
    },
  }),
];

interface TakenOver {
  readonly stale: Lease;
  readonly fresh: Lease;
  readonly id: string;
}

/** Keys whose first leases ran out and that somebody else works on now. */
async function takeOver(scene: Scene, count: number): Promise<TakenOver[]> {
  for (let index = 0; index < count; index += 1) await scene.submit(`k${index}`, { id: `item${index}` });
  const stale = await scene.claimCount(count, { leaseMs: scene.leaseMs });
  const fresh = await scene.claimCount(count);
  return fresh.map(({ lease, item }) => {
    const before = present(
      stale.find((grant) => grant.item.id === item.id),
      "The item is handed out again",
    );
    return { stale: before.lease, fresh: lease, id: item.id };
  });
}

async function takeOverOne(scene: Scene): Promise<TakenOver> {
  const [taken] = await takeOver(scene, 1);
  return present(taken, "A key that was taken over");
}

async function expectRunning(scene: Scene, id: string, lease: Lease): Promise<void> {
  const report = await scene.find(id);
  equal(report?.state, "running", "The item of the new holder");
  equal(report?.running?.fence, lease.fence, "The fence under which the item runs");
}

function leaseName({ queue, key, fence }: Lease): Pick<Lease, "queue" | "key" | "fence"> {
  return { queue, key, fence };
}

function expectRising(fences: readonly number[]): void {
  for (const [index, fence] of fences.entries()) {
    const earlier = fences[index - 1] ?? 0;
    ok(
      Number.isSafeInteger(fence) && fence > earlier,
      `Fences must rise strictly and be above zero; they were ${fences.join(", ")}`,
    );
  }
}
