import type { EndedItem, Grant } from "../../engine/port.ts";
import { type ConformanceCase, casesOf, type Guarantee, timedCasesOf } from "../case.ts";
import { equal, LeftOut, present } from "../expect.ts";
import { type ClaimWish, type Scene, LONG_LEASE_MS } from "../scene.ts";

const HOUR_MS = 3_600_000;
const FAILURE = { message: "not yet" };

/** A lease covers a run: the key's next items, in order. */
export const runs: readonly ConformanceCase[] = [
  ...runsOf(casesOf, "G5", {
    "a run has the next items of the key, in order, of one level": async (scene) => {
      await line(scene, "k", ["a", "b", "c"]);
      await scene.submit("k", { id: "low", level: "low" });
      await scene.submit("other", { id: "o" });
      const grant = await scene.claimOne({ items: 10 });
      equal(idsOf(grant), ["a", "b", "c"], "The items of the run");
      equal(attemptsOf(grant), [1, 1, 1], "The attempts that they would be");
      equal(idsOf(await scene.claimOne({ items: 10 })), ["o"], "The run of the other key");
    },

    "a run has no more items than were asked for": async (scene) => {
      await line(scene, "k", ["a", "b", "c"]);
      const grant = await scene.claimOne({ items: 2 });
      equal(idsOf(grant), ["a", "b"], "The items of the run");
      await finish(scene, grant, 1);
      equal(idsOf(await scene.claimOne()), ["c"], "Without a number");
    },

    "an item that was tried before runs alone": async (scene) => {
      await line(scene, "k", ["a", "b"]);
      await scene.retry(await scene.claimOne());
      const again = await scene.claimOne({ items: 5 });
      equal([idsOf(again), attemptsOf(again)], [["a"], [2]], "The run");
    },

    "what a run left goes on behind what is more urgent": async (scene) => {
      await line(scene, "k", ["a", "b", "c"]);
      const grant = await scene.claimOne({ items: 3 });
      await scene.submit("k", { id: "urgent", level: "high" });
      await finish(scene, grant, 0);
      equal(idsOf(await claimAndFinish(scene)), ["urgent"], "First");
      equal(idsOf(await claimAndFinish(scene)), ["b", "c"], "Then");
    },

    "a run of another worker goes on where this one ended": async (scene) => {
      await line(scene, "k", ["a", "b", "c", "d", "e"]);
      await finish(scene, await scene.claimOne({ items: 3 }), 1);
      await scene.submit("k", { id: "f" });
      equal(idsOf(await scene.claimOne({ items: 10 })), ["c", "d", "e", "f"], "The items of the next run");
    },
  }),

  ...runsOf(casesOf, "G4", {
    "all items of a run end with one settlement": async (scene) => {
      await line(scene, "k", ["a", "b", "c"]);
      const { lease } = await scene.claimOne({ items: 3 });
      const result = { type: "text/plain", body: "painted" };
      const ended: EndedItem[] = [
        { id: "a", ending: { type: "done", result } },
        { id: "b", ending: { type: "cancelled" } },
      ];
      equal(await scene.engine.settle([{ lease, ended, ending: { type: "done" } }]), ["settled"], "The settlement");
      const outcomes = await Promise.all(["a", "b", "c"].map((id) => scene.outcome(id)));
      const said = outcomes.map((outcome) => [outcome?.state, outcome?.attempt, outcome?.result?.body]);
      equal(
        said,
        [
          ["done", 1, "painted"],
          ["cancelled", 1, undefined],
          ["done", 1, undefined],
        ],
        "How they ended",
      );
      const { waiting, running } = await scene.report();
      equal([waiting, running], [0, 0], "What is left");
    },

    "what a run did not begin goes back untouched": async (scene) => {
      await line(scene, "k", ["a", "b", "c"]);
      const { lease } = await scene.claimOne({ items: 3 });
      const ended: EndedItem[] = [{ id: "a", ending: { type: "done" } }];
      equal(await scene.engine.settle([{ lease, ended, ending: { type: "release" } }]), ["settled"], "The settlement");
      const report = await scene.find("b");
      equal([report?.state, report?.attempt, report?.attempts], ["waiting", 0, undefined], "The next item");
      const next = await scene.claimOne({ items: 3 });
      equal(
        [idsOf(next), attemptsOf(next)],
        [
          ["b", "c"],
          [1, 1],
        ],
        "The next run",
      );
    },

    "an item of a run that fails ends the run, and keeps its place": async (scene) => {
      await line(scene, "k", ["a", "b", "c"]);
      const grant = await scene.claimOne({ items: 3 });
      const { lease } = grant;
      const ended: EndedItem[] = [{ id: "a", ending: { type: "done" } }];
      const ending = { type: "retry", delayMs: 0, place: "keep", failure: FAILURE } as const;
      equal(await scene.engine.settle([{ lease, ended, ending }]), ["settled"], "The settlement");
      const again = await claimAndFinish(scene);
      equal([idsOf(again), attemptsOf(again)], [["b"], [2]], "The run after it");
      const last = await scene.claimOne({ items: 3 });
      equal([idsOf(last), attemptsOf(last)], [["c"], [1]], "The last one");
    },

    "an item of a run that is given up is a dead letter": async (scene) => {
      await line(scene, "k", ["a", "b", "c"]);
      const { lease } = await scene.claimOne({ items: 3 });
      const ended: EndedItem[] = [{ id: "a", ending: { type: "done" } }];
      await scene.engine.settle([{ lease, ended, ending: { type: "dead", failure: FAILURE } }]);
      const [letter] = await scene.engine.dead({ queue: scene.queue, limit: 10 });
      equal([letter?.id, letter?.attempt], ["b", 1], "The dead letter");
      equal(idsOf(await scene.claimOne()), ["c"], "The next item");
    },

    "counts tell what runs from what is covered": async (scene) => {
      await line(scene, "k", ["a", "b", "c"]);
      const grant = await scene.claimOne({ items: 3 });
      const before = await scene.report();
      equal([before.waiting, before.running], [2, 1], "While the run lasts");
      const [key] = await scene.engine.keys({ queue: scene.queue, limit: 10 });
      equal([key?.state, key?.waiting, key?.running?.id], ["running", 2, "a"], "The key");
      equal((await scene.find("b"))?.state, "waiting", "A covered item");
      await finish(scene, grant, 0);
      const after = await scene.report();
      equal([after.waiting, after.running], [2, 0], "After it");
    },

    "an item that a lease covers is cancelled by its holder only": async (scene) => {
      await line(scene, "k", ["a", "b", "c"]);
      const grant = await scene.claimOne({ items: 3 });
      equal(await scene.engine.cancel({ queue: scene.queue, id: "b" }), "requested", "While it is covered");
      equal((await scene.find("b"))?.state, "waiting", "The item");
      await finish(scene, grant, 0);
      const outcome = await scene.outcome("b");
      equal([outcome?.state, outcome?.attempt], ["cancelled", 0], "How it ended with the lease");
      equal(idsOf(await scene.claimOne({ items: 3 })), ["c"], "What is left");
    },

    "an item that was to be cancelled, and was done by then, is done": async (scene) => {
      await line(scene, "k", ["a", "b"]);
      const grant = await scene.claimOne({ items: 2 });
      equal(await scene.engine.cancel({ queue: scene.queue, id: "b" }), "requested", "While it is covered");
      await finish(scene, grant, 1);
      equal((await scene.outcome("b"))?.state, "done", "How it ended");
    },

    "mode latest replaces nothing that a lease covers": async (scene) => {
      await line(scene, "k", ["a", "b"]);
      const grant = await scene.claimOne({ items: 2 });
      equal((await scene.submit("k", { id: "c", mode: "latest" })).replaced, [], "What the first replaces");
      equal((await scene.submit("k", { id: "d", mode: "latest" })).replaced, ["c"], "What the second replaces");
      await finish(scene, grant, 0);
      equal(idsOf(await scene.claimOne({ items: 3 })), ["b", "d"], "The items of the next run");
    },

    "a key that is paused keeps what its run left": async (scene) => {
      await line(scene, "k", ["a", "b"]);
      const grant = await scene.claimOne({ items: 2 });
      await scene.engine.pause({ queue: scene.queue, key: "k", paused: true });
      await finish(scene, grant, 0);
      equal(await scene.claimReady({ items: 2 }), [], "While it is paused");
      await scene.engine.pause({ queue: scene.queue, key: "k", paused: false });
      equal(idsOf(await scene.claimOne({ items: 2 })), ["b"], "Afterwards");
    },
  }),

  ...runsOf(casesOf, "G2", {
    "a renewal ends what ran before, and gives back what is behind": async (scene) => {
      await line(scene, "k", ["a", "b", "c", "d"]);
      const { lease } = await scene.claimOne({ items: 3 });
      const ended: EndedItem[] = [{ id: "a", ending: { type: "done" } }];
      for (const time of ["first", "second"])
        equal((await scene.renew(lease, { ended })).ok, true, `The ${time} renewal`);
      equal((await scene.outcome("a"))?.state, "done", "The item before");
      const running = await scene.find("b");
      equal([running?.state, running?.attempt, running?.running?.fence], ["running", 1, lease.fence], "What runs");
      equal(await scene.engine.cancel({ queue: scene.queue, id: "c" }), "cancelled", "What is not covered any more");
      const settled = await scene.engine.settle([{ lease, ended, ending: { type: "done" } }]);
      equal(settled, ["settled"], "A settlement that says it once more");
      equal((await scene.outcome("b"))?.attempt, 1, "The attempt that counts");
      equal(idsOf(await scene.claimOne({ items: 3 })), ["d"], "The next run");
    },

    "an item that began behind others, and is given back, does not count": async (scene) => {
      await line(scene, "k", ["a", "b"]);
      const { lease } = await scene.claimOne({ items: 2 });
      await scene.renew(lease, { ended: [{ id: "a", ending: { type: "done" } }] });
      await scene.finish({ lease }, { type: "release" });
      const next = await scene.claimOne();
      equal([idsOf(next), attemptsOf(next)], [["b"], [1]], "The next attempt");
    },

    "a report under an old lease ends nothing": async (scene) => {
      await line(scene, "k", ["a", "b"]);
      const stale = await scene.claimOne({ items: 2, leaseMs: scene.leaseMs });
      const again = await scene.claimOne({ items: 2 });
      const ended: EndedItem[] = [{ id: "a", ending: { type: "done" } }];
      const { lease } = stale;
      equal((await scene.renew(lease, { ended })).ok, false, "A renewal");
      equal(await scene.engine.settle([{ lease, ended, ending: { type: "done" } }]), ["lost"], "A settlement");
      equal([(await scene.find("a"))?.state, (await scene.find("b"))?.state], ["running", "waiting"], "The items");
      await scene.done(again);
    },
  }),

  ...runsOf(timedCasesOf, "G11", {
    "a lost lease costs the first item of its run an attempt, and the others go one by one": async (scene) => {
      await line(scene, "k", ["a", "b", "c", "d", "e"]);
      await scene.claimOne({ items: 3, leaseMs: scene.leaseMs });
      const seen: unknown[] = [];
      for (let count = 0; count < 3; count += 1) {
        const grant = await claimAndFinish(scene);
        seen.push([idsOf(grant), attemptsOf(grant), grant.item.losses ?? 0]);
      }
      const alone = [
        [["a"], [2], 1],
        [["b"], [1], 0],
        [["c"], [1], 0],
      ];
      equal(seen, alone, "Their runs, attempts and losses");
      equal(idsOf(await scene.claimOne({ items: 5 })), ["d", "e"], "The run behind them");
    },

    "an item that is given back does not make those behind a lost one any safer": async (scene) => {
      await line(scene, "k", ["a", "b", "c"]);
      await scene.claimOne({ items: 3, leaseMs: scene.leaseMs });
      await scene.finish(await scene.claimOne({ items: 3 }), { type: "release" });
      equal(idsOf(await claimAndFinish(scene)), ["a"], "The first");
      await scene.finish(await scene.claimOne({ items: 3 }), { type: "release" });
      equal(idsOf(await claimAndFinish(scene)), ["b"], "The second");
      equal(idsOf(await claimAndFinish(scene)), ["c"], "The third");
    },

    "losses of an item add up, and failures are none": async (scene) => {
      await line(scene, "k", ["a"]);
      await scene.claimOne({ leaseMs: scene.leaseMs });
      const second = await scene.claimOne();
      equal([second.item.attempt, second.item.losses], [2, 1], "After the first");
      await scene.retry(second);
      await scene.claimOne({ leaseMs: scene.leaseMs });
      const last = await scene.claimOne();
      equal([last.item.attempt, last.item.losses], [4, 2], "After the second");
      await scene.finish(last, { type: "dead", failure: FAILURE });
      await scene.engine.revive({ queue: scene.queue, action: "retry" });
      equal((await scene.claimOne()).item.losses ?? 0, 0, "Of a dead letter that is tried again");
    },

    "an item that was to be cancelled ends as cancelled when its lease is lost": async (scene) => {
      await line(scene, "k", ["a", "b", "c"]);
      await scene.claimOne({ items: 3, leaseMs: scene.leaseMs });
      equal(await scene.engine.cancel({ queue: scene.queue, id: "b" }), "requested", "While it is covered");
      equal(idsOf(await claimAndFinish(scene)), ["a"], "The first after it");
      equal((await scene.outcome("b"))?.state, "cancelled", "How it ended");
      equal(idsOf(await claimAndFinish(scene)), ["c"], "The last one");
    },

    "an item that waits for its retry keeps the run behind it waiting": async (scene) => {
      await line(scene, "k", ["a", "b", "c"]);
      const { lease } = await scene.claimOne({ items: 3 });
      const ended: EndedItem[] = [{ id: "a", ending: { type: "done" } }];
      const ending = { type: "retry", delayMs: HOUR_MS, place: "keep", failure: FAILURE } as const;
      await scene.engine.settle([{ lease, ended, ending }]);
      equal(await scene.claimReady({ items: 3 }), [], "What is ready");
      equal((await scene.find("c"))?.attempt, 0, "Attempts of the last one");
    },

    "an item that yields lets the run behind it pass": async (scene) => {
      await line(scene, "k", ["a", "b", "c", "d"]);
      await scene.finish(await scene.claimOne(), { type: "retry", delayMs: 100, place: "yield", failure: FAILURE });
      const run = await scene.claimOne({ items: 2 });
      equal(idsOf(run), ["b", "c"], "The run that passes");
      await scene.letPass(300);
      await finish(scene, run, 0);
      const order: unknown[] = [];
      for (let count = 0; count < 3; count += 1) order.push((await claimAndFinish(scene, { items: 1 })).item.id);
      equal(order, ["c", "a", "d"], "What follows: what the lease covered is not overtaken");
    },
  }),
];

type Cases = Parameters<typeof casesOf>[1];

/** Engines whose runs have one item are not asked for more. */
function runsOf(make: typeof casesOf, guarantee: Guarantee, all: Cases): ConformanceCase[] {
  const asked = Object.entries(all).map(([name, play]) => {
    const run = async (scene: Scene): Promise<void> => {
      if (scene.engine.runs !== true) throw new LeftOut("Every run of this engine has one item.");
      await play(scene);
    };
    return [name, run] as const;
  });
  return make(guarantee, Object.fromEntries(asked));
}

async function line(scene: Scene, key: string, ids: readonly string[]): Promise<void> {
  for (const id of ids) await scene.submit(key, { id });
}

function idsOf({ item, behind = [] }: Grant): string[] {
  return [item, ...behind].map(({ id }) => id);
}

function attemptsOf({ item, behind = [] }: Grant): number[] {
  return [item, ...behind].map(({ attempt }) => attempt);
}

/** Ends the items of a run up to the one with this place, as done. */
async function finish(scene: Scene, grant: Grant, last: number): Promise<void> {
  const ended = idsOf(grant)
    .slice(0, last)
    .map((id): EndedItem => ({ id, ending: { type: "done" } }));
  const settled = await scene.engine.settle([{ lease: grant.lease, ended, ending: { type: "done" } }]);
  equal(present(settled[0], "A settlement has a result"), "settled", "Settling under a current lease");
}

/** Claims a run, as long as one may be, and ends all of it. */
async function claimAndFinish(scene: Scene, wish: ClaimWish = {}): Promise<Grant> {
  const grant = await scene.claimOne({ items: 5, leaseMs: LONG_LEASE_MS, ...wish });
  await finish(scene, grant, (grant.behind ?? []).length);
  return grant;
}
