import type { Failure } from "../../domain/failure.ts";
import { bodyBytes } from "../../domain/payload.ts";
import type { AttemptReport, Ending, Grant, ItemReport } from "../../engine/port.ts";
import { type ConformanceCase, casesOf, restartCasesOf } from "../case.ts";
import { atLeast, atMost, equal, present } from "../expect.ts";
import type { Scene } from "../scene.ts";

const FAILURE: Failure = { message: "connect ECONNREFUSED 127.0.0.1:9", code: "ECONNREFUSED" };
const HOUR_MS = 3_600_000;

/** What is known of an item's attempts. */
export const tried: readonly ConformanceCase[] = [
  ...casesOf("G11", {
    "an item that waits for its retry says how it failed": async (scene) => {
      const { id } = await scene.submit("k");
      const before = scene.clock.wall();
      await fail(scene, await scene.claimOne({ worker: "anna" }), HOUR_MS);
      const report = await found(scene, id);
      equal([report.state, report.attempt, report.failure], ["waiting", 1, FAILURE], "The item");
      const { at, ...first } = present(report.attempts?.[0], "The item has an attempt");
      equal<unknown>(first, { end: "failed", attempt: 1, worker: "anna", failure: FAILURE }, "Its first attempt");
      atLeast(at, before - 1, "When it ended");
      atMost(at, scene.clock.wall() + 1, "When it ended");
    },

    "an item that yielded its place says how it failed, and still does when it is back": async (scene) => {
      const { id } = await scene.submit("k", { id: "yields" });
      await fail(scene, await scene.claimOne({ worker: "anna" }), 100, "yield");
      equal((await found(scene, id)).failure, FAILURE, "Why it steps aside");
      const again = await scene.claimOne({ worker: "bert" });
      equal(said(await found(scene, id)), ["failed 1 anna"], "What was tried, while it runs again");
      await fail(scene, again, HOUR_MS);
      equal(said(await found(scene, id)), ["failed 1 anna", "failed 2 bert"], "What was tried");
    },

    "an attempt whose lease ran out is known, and whose it was": async (scene) => {
      const { id } = await scene.submit("k");
      await scene.claimOne({ worker: "anna", leaseMs: scene.leaseMs });
      const again = await scene.claimOne({ worker: "bert" });
      const report = await found(scene, id);
      equal([said(report), report.failure], [["lost 1 anna"], undefined], "What was tried");
      await fail(scene, again, HOUR_MS);
      equal(said(await found(scene, id)), ["lost 1 anna", "failed 2 bert"], "What was tried");
    },

    "an attempt that was given back is known until the next one ends": async (scene) => {
      const { id } = await scene.submit("k");
      await fail(scene, await scene.claimOne({ worker: "anna" }));
      for (const worker of ["bert", "carl"]) await scene.finish(await scene.claimOne({ worker }), { type: "release" });
      const report = await found(scene, id);
      equal([said(report), report.failure], [["failed 1 anna", "released 2 carl"], FAILURE], "What was tried");
      await fail(scene, await scene.claimOne({ worker: "dora" }), HOUR_MS);
      equal(said(await found(scene, id)), ["failed 1 anna", "failed 2 dora"], "What was tried");
    },

    "of many attempts the last few are known": async (scene) => {
      const { id } = await scene.submit("k", { payload: { type: "image/x", body: new Uint8Array([0, 255]) } });
      for (let count = 0; count < 8; count += 1) await fail(scene, await scene.claimOne({ worker: `w${count}` }));
      const names = said(await found(scene, id));
      equal(names, ["failed 4 w3", "failed 5 w4", "failed 6 w5", "failed 7 w6", "failed 8 w7"], "What was tried");
      const { item } = await scene.claimOne();
      equal([...bodyBytes(item.payload.body)], [0, 255], "The payload");
    },

    "what is kept of an attempt is bounded": async (scene) => {
      const { id } = await scene.submit("k");
      const failure = { message: `é"\n\0${"é".repeat(2_000)}`, code: "E/1", stack: "x".repeat(4_000) };
      const grant = await scene.claimOne({ worker: `host "7"\n\\/é` });
      await scene.finish(grant, { type: "retry", delayMs: HOUR_MS, place: "keep", failure });
      const [attempt] = present((await found(scene, id)).attempts, "The item has attempts");
      equal(attempt?.worker, `host "7"\n\\/é`, "The worker");
      equal(attempt?.failure?.code, "E/1", "The code");
      equal(attempt?.failure?.stack, undefined, "The stack of an earlier attempt");
      const { message = "" } = attempt?.failure ?? {};
      equal(message.startsWith('é"\n\0éé'), true, "The beginning of the message");
      atMost(Buffer.byteLength(message), 600, "Bytes of the message");
    },

    "a more urgent item does not take the history of the one that steps back": async (scene) => {
      const { id } = await scene.submit("k");
      await fail(scene, await scene.claimOne({ worker: "anna" }), HOUR_MS);
      const urgent = await scene.submit("k", { level: "high" });
      equal(said(await found(scene, urgent.id)), [], "What was tried of the urgent one");
      await scene.done(await scene.claimOne());
      equal(said(await found(scene, id)), ["failed 1 anna"], "What was tried of the other");
    },

    "a dead letter has its attempts, and so has its outcome": async (scene) => {
      for (const id of [undefined, "letter"]) {
        const accepted = await scene.submit("k", id === undefined ? {} : { id });
        await fail(scene, await scene.claimOne({ worker: "anna" }));
        await scene.finish(await scene.claimOne({ worker: "bert" }), { type: "dead", failure: { message: "no" } });
        const expected = ["failed 1 anna", "failed 2 bert"];
        const letter = (await scene.engine.dead({ queue: scene.queue, limit: 10 })).at(-1);
        equal(said(letter), expected, "The dead letter");
        equal(letter?.attempts?.at(-1)?.failure?.message, "no", "The last of them");
        const report = await found(scene, accepted.id);
        equal([said(report), said(report.outcome)], [expected, expected], "The item and its outcome");
        equal(report.outcome?.failure?.message, "no", "Why it was given up");
        equal(said(await scene.outcome(accepted.id)), expected, "The outcome");
      }
    },

    "a dead letter that is tried again keeps its attempts": async (scene) => {
      await scene.submit("k", { id: "letter" });
      await scene.finish(await scene.claimOne({ worker: "anna" }), { type: "dead", failure: FAILURE });
      await scene.engine.revive({ queue: scene.queue, ids: ["letter"], action: "retry" });
      const revived = await found(scene, "letter");
      equal([revived.attempt, said(revived)], [0, ["failed 1 anna"]], "The letter");
      equal(revived.failure, FAILURE, "Why it was a dead letter");
      const grant = await scene.claimOne({ worker: "bert" });
      equal(grant.item.attempt, 1, "Its attempts, counted anew");
      await scene.finish(grant, { type: "dead", failure: { message: "again" } });
      equal(said(await scene.outcome("letter")), ["failed 1 anna", "failed 1 bert"], "The outcome in the end");
    },

    "what was done, or cancelled, after failures says so in its outcome": async (scene) => {
      const ends: readonly Ending[] = [
        { type: "done" },
        { type: "done", result: { type: "application/json", body: "7" } },
        { type: "cancelled" },
      ];
      for (const [index, ending] of ends.entries()) {
        const { id } = await scene.submit("k", { id: `item-${index}` });
        await fail(scene, await scene.claimOne({ worker: "anna" }));
        await scene.finish(await scene.claimOne(), ending);
        const report = await found(scene, id);
        equal([report.state, said(report)], [ending.type, ["failed 1 anna"]], `The item, ${ending.type} at last`);
        const outcome = await scene.outcome(id);
        equal([said(outcome), outcome?.failure], [["failed 1 anna"], undefined], "Its outcome");
      }
      await scene.submit("k", { id: "waits" });
      await fail(scene, await scene.claimOne({ worker: "anna" }), HOUR_MS);
      await scene.engine.cancel({ queue: scene.queue, id: "waits" });
      equal(said(await scene.outcome("waits")), ["failed 1 anna"], "What was cancelled while it waited");
      await scene.submit("k", { id: "replaced" });
      await fail(scene, await scene.claimOne({ worker: "anna" }), HOUR_MS);
      await scene.submit("k", { mode: "latest" });
      equal(said(await scene.outcome("replaced")), ["failed 1 anna"], "What was replaced while it waited");
    },

    "what went well at once has no history": async (scene) => {
      await scene.submit("k", { id: "item" });
      const waiting = await found(scene, "item");
      await scene.done(await scene.claimOne());
      const outcome = await scene.outcome("item");
      equal([waiting.attempts, outcome?.attempts, outcome?.failure], [undefined, undefined, undefined], "The history");
    },

    "a result that was not kept is missed in the outcome": async (scene) => {
      await scene.submit("k", { id: "item" });
      await scene.finish(await scene.claimOne(), { type: "done", resultMissing: "it is a function" });
      const expected = ["done", undefined, "it is a function", undefined];
      for (const outcome of [await scene.outcome("item"), (await found(scene, "item")).outcome])
        equal([outcome?.state, outcome?.result, outcome?.resultMissing, outcome?.failure], expected, "The outcome");
      await scene.submit("k", { id: "other" });
      await scene.done(await scene.claimOne());
      equal((await scene.outcome("other"))?.resultMissing, undefined, "Of one that had none");
    },
  }),

  ...restartCasesOf("G11", {
    "the history of an item survives a restart": async (scene) => {
      const { id } = await scene.submit("k");
      await fail(scene, await scene.claimOne({ worker: "anna" }), HOUR_MS);
      await scene.submit("dead", { id: "dead" });
      await scene.finish(await scene.claimOne({ worker: "bert" }), { type: "dead", failure: FAILURE });
      await scene.restart();
      const report = await found(scene, id);
      equal([said(report), report.failure], [["failed 1 anna"], FAILURE], "What was tried");
      equal(said(await found(scene, "dead")), ["failed 1 bert"], "What was tried of the dead letter");
    },
  }),
];

async function fail(scene: Scene, grant: Grant, delayMs = 0, place: "keep" | "yield" = "keep"): Promise<void> {
  await scene.finish(grant, { type: "retry", delayMs, place, failure: FAILURE });
}

async function found(scene: Scene, id: string): Promise<ItemReport> {
  return present(await scene.find(id), `Item ${id} is found`);
}

function said(of: { readonly attempts?: readonly AttemptReport[] } | undefined): string[] {
  return (of?.attempts ?? []).map(({ end, attempt, worker }) => `${end} ${attempt} ${worker}`);
}
