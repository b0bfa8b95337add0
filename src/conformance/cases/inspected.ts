import type { Accepted } from "../../engine/port.ts";
import { type ConformanceCase, casesOf } from "../case.ts";
import { atLeast, atMost, equal, ok, present } from "../expect.ts";
import { keysOf, LONG_LEASE_MS, type Scene, textOf } from "../scene.ts";

/** Long enough to tell one deadline from the next. */
const PASSING_MS = 300;
/** Stores may count whole milliseconds, by a clock of their own. */
const ROUNDING_MS = 5;

const CANCELLING = casesOf("G4", {
  "cancel takes back what waits, and says so": async (scene) => {
    await scene.submit("k", { id: "first" });
    await scene.submit("k", { id: "second", text: "second" });
    await scene.submit("k", { id: "third" });
    await scene.submit("k", { id: "delayed", delayMs: 3_600_000 });
    for (const id of ["first", "third", "delayed"]) {
      equal(await scene.engine.cancel({ queue: scene.queue, id }), "cancelled", `Cancelling ${id}`);
      equal((await scene.find(id))?.state, "cancelled", `The state of ${id}`);
    }
    const { waiting, delayed } = await scene.report();
    equal([waiting, delayed], [1, 0], "Items that wait, and that are delayed");
    const ready = await scene.claimReady();
    equal(ready.map(textOf), ["second"], "What is left");
  },

  "cancel of an item in work reaches its worker by the next renewal": async (scene) => {
    await scene.submit("k", { id: "item" });
    const grant = await scene.claimOne();
    const before = await scene.renew(grant.lease);
    equal(before.ok && before.cancelRequested, false, "A cancel that nobody asked for");
    equal(await scene.engine.cancel({ queue: scene.queue, id: "item" }), "requested", "Cancelling an item in work");
    equal((await scene.find("item"))?.state, "running", "The item still runs");
    const after = await scene.renew(grant.lease);
    equal(after.ok && after.cancelRequested, true, "The cancel, as the renewal reports it");
    await scene.finish(grant, { type: "cancelled" });
    equal((await scene.find("item"))?.state, "cancelled", "The item");
  },

  "an item that was cancelled in work does not run again": async (scene) => {
    for (const type of ["retry", "release"] as const) {
      await scene.submit("k", { id: type });
      const grant = await scene.claimOne();
      await scene.engine.cancel({ queue: scene.queue, id: type });
      if (type === "retry") await scene.retry(grant);
      else await scene.finish(grant, { type });
      equal(await scene.claimReady(), [], `What is ready after ${type}`);
      equal((await scene.find(type))?.state, "cancelled", `The item after ${type}`);
    }
  },

  "an item that was done in spite of a cancel is done": async (scene) => {
    await scene.submit("k", { id: "item" });
    const grant = await scene.claimOne();
    await scene.engine.cancel({ queue: scene.queue, id: "item" });
    await scene.done(grant);
    equal((await scene.find("item"))?.state, "done", "The item");
  },

  "an item that was tried and is taken back says how often": async (scene) => {
    await scene.submit("k", { id: "item" });
    await scene.retry(await scene.claimOne());
    equal(await scene.engine.cancel({ queue: scene.queue, id: "item" }), "cancelled", "Cancelling what waits again");
    const { attempt, outcome } = present(await scene.find("item"), "The item is remembered");
    equal([attempt, outcome?.attempt], [1, 1], "Its attempts, and those of its outcome");
  },

  "cancel of what ended or never was changes nothing": async (scene) => {
    await scene.submit("k", { id: "done" });
    await scene.done(await scene.claimOne());
    await scene.submit("k", { id: "dead" });
    await scene.finish(await scene.claimOne(), { type: "dead", failure: { message: "no" } });
    equal(await scene.engine.cancel({ queue: scene.queue, id: "done" }), "ended", "Cancelling what is done");
    equal(await scene.engine.cancel({ queue: scene.queue, id: "dead" }), "ended", "Cancelling a dead letter");
    equal(await scene.engine.cancel({ queue: scene.queue, id: "nobody" }), "missing", "Cancelling what never was");
    equal((await scene.find("done"))?.state, "done", "What was done");
    equal((await scene.report()).dead, 1, "Dead letters");
  },
});

const LEASED = casesOf("G4", {
  "keys under a lease can be listed alone": async (scene) => {
    for (const key of ["a", "b", "c", "d"]) await scene.submit(key);
    const { lease } = await scene.claimOne();
    await scene.hold("held");
    const leased = await scene.engine.keys({ queue: scene.queue, limit: 10, leased: true });
    equal(
      leased.map(({ key, state }) => `${key} ${state}`),
      [`${lease.key} running`, "held held"],
      "Keys under a lease",
    );
    const rest = await scene.engine.keys({ queue: scene.queue, limit: 10, leased: true, after: lease.key });
    equal(
      rest.map(({ key }) => key),
      ["held"],
      "The page behind the first",
    );
  },
});

const DEAD_LETTERS = casesOf("G4", {
  "dead letters are listed oldest first, page by page": async (scene) => {
    const ids = ["d1", "d2", "d3", "d4", "d5"];
    for (const id of ids) await bury(scene, id);
    equal((await scene.report()).dead, 5, "Dead letters");
    const listed: string[] = [];
    for (let after: string | undefined; listed.length < 6;) {
      const page = await scene.engine.dead({ queue: scene.queue, limit: 2, ...(after === undefined ? {} : { after }) });
      atMost(page.length, 2, "Letters on a page of two");
      listed.push(...page.map(({ id }) => id));
      after = page.at(-1)?.id;
      if (after === undefined) break;
    }
    equal(listed, ids, "The pages together");
  },

  "a dead letter shows what it was": async (scene) => {
    const before = scene.clock.wall();
    await scene.submit("k", { id: "item", text: "payload", level: "high" });
    await scene.finish(await scene.claimOne(), { type: "dead", failure: { message: "bad", code: "E" } });
    const [letter] = await scene.engine.dead({ queue: scene.queue, limit: 10 });
    const { at, submittedAt, attempts: _, ...rest } = present(letter, "A dead letter is listed");
    const payload = { type: "text/plain", body: "payload" };
    const expected = {
      id: "item",
      key: "k",
      level: "high",
      attempt: 1,
      failure: { message: "bad", code: "E" },
      payload,
    };
    equal<unknown>(rest, expected, "The dead letter");
    atLeast(at, before - 1, "When it died");
    atMost(submittedAt, at, "When it was submitted");
  },

  "a dead letter that is retried starts over, behind what waits": async (scene) => {
    await bury(scene, "letter");
    await scene.submit("k", { text: "waiting" });
    equal(await scene.engine.revive({ queue: scene.queue, ids: ["letter"], action: "retry" }), 1, "Letters retried");
    equal((await scene.report()).dead, 0, "Dead letters left");
    equal((await scene.find("letter"))?.state, "waiting", "The letter");
    const first = await scene.claimOne();
    equal(textOf(first), "waiting", "What goes first");
    await scene.done(first);
    const again = await scene.claimOne();
    equal([again.item.id, again.item.attempt, textOf(again)], ["letter", 1, "text of letter"], "The letter runs again");
    const waiting = scene.outcome("letter");
    await scene.done(again);
    equal((await waiting)?.state, "done", "Its outcome in the end");
  },

  "only the dead letters that are named are touched": async (scene) => {
    for (const id of ["a", "b", "c"]) await bury(scene, id);
    await scene.submit("live", { id: "live" });
    const named = { queue: scene.queue, ids: ["a", "live", "nobody", "c"] };
    equal(await scene.engine.revive({ ...named, action: "drop" }), 2, "Letters dropped");
    equal(await scene.engine.revive({ ...named, action: "drop" }), 0, "Letters dropped a second time");
    const left = await scene.engine.dead({ queue: scene.queue, limit: 10 });
    equal(
      left.map(({ id }) => id),
      ["b"],
      "Letters left",
    );
    equal((await scene.find("live"))?.state, "waiting", "An item that is not dead");
  },

  "all dead letters are retried, oldest first": async (scene) => {
    for (const id of ["a", "b", "c"]) await bury(scene, id);
    equal(await scene.engine.revive({ queue: scene.queue, action: "retry" }), 3, "Letters retried");
    const order: string[] = [];
    for (let count = 0; count < 3; count += 1) {
      const grant = await scene.claimOne();
      order.push(grant.item.id);
      await scene.done(grant);
    }
    equal(order, ["a", "b", "c"], "The order in which they run again");
  },

  "dead letters that several bring back at once run once": async (scene) => {
    const ids = ["a", "b", "c", "d", "e"];
    for (const id of ids) await bury(scene, id);
    const handles = [scene.engine, scene.engine, await scene.open()];
    const counts = await Promise.all(handles.map((one) => one.revive({ queue: scene.queue, action: "retry" })));
    equal(
      counts.reduce((sum, count) => sum + count, 0),
      ids.length,
      "Letters retried, over all that asked",
    );
    const ran: string[] = [];
    while (ran.length < ids.length) {
      const grant = await scene.claimOne();
      ran.push(grant.item.id);
      await scene.done(grant);
    }
    equal(ran.toSorted(), ids, "What ran again");
    const { waiting, running, dead } = await scene.report();
    equal([waiting, running, dead], [0, 0, 0], "Items left: waiting, running and dead");
  },

  "a dropped dead letter is gone, but its id is still known": async (scene) => {
    const first = await bury(scene, "letter");
    await scene.engine.revive({ queue: scene.queue, action: "drop" });
    equal(await scene.engine.dead({ queue: scene.queue, limit: 10 }), [], "Dead letters");
    equal((await scene.find("letter"))?.state, "dead", "The dropped letter");
    equal((await scene.outcome("letter"))?.failure?.message, "no", "Its failure");
    equal(await scene.submit("k", { id: "letter" }), { ...first, duplicate: true }, "Submitting its id again");
  },

  "a dropped dead letter that is not kept is forgotten": async (scene) => {
    const { id } = await scene.submit("k");
    await scene.finish(await scene.claimOne(), { type: "dead", failure: { message: "no" } });
    await scene.engine.revive({ queue: scene.queue, action: "drop" });
    equal(await scene.find(id), undefined, "The dropped letter");
  },
});

const REPORTS = casesOf("G4", {
  "an item in work shows who works on it": async (scene) => {
    const { id } = await scene.submit("k", { id: "item" });
    const before = scene.clock.wall();
    const grant = await scene.claimOne({ worker: "anna" });
    await scene.renew(grant.lease, { progress: 0.25 });
    const { running } = present(await scene.find(id), "The item is found");
    const { since, deadline, ...rest } = present(running, "An item in work has a report of it");
    equal<unknown>(
      rest,
      { worker: "anna", fence: grant.lease.fence, attempt: 1, progress: 0.25, id },
      "Who works on it",
    );
    atLeast(since, before - 1, "Since when");
    atLeast(deadline, before + LONG_LEASE_MS - 1, "Until when");
    const [key] = await scene.engine.keys({ queue: scene.queue, limit: 10 });
    // A deadline that is kept by the monotonic clock may look a little different each time it is told.
    equal(key?.running, { ...rest, since, deadline: key?.running?.deadline ?? 0 }, "The same in the report of the key");
  },

  "a held key shows who holds it": async (scene) => {
    const lease = present(await scene.hold("k"), "An idle key can be held");
    await scene.renew(lease, { progress: 0.5 });
    const [key] = await scene.engine.keys({ queue: scene.queue, limit: 10 });
    const { state, waiting, running } = present(key, "A held key is listed");
    equal([state, waiting, running?.worker, running?.fence], ["held", 0, "holder", lease.fence], "The held key");
    equal([running?.attempt, running?.id], [0, undefined], "Attempt and item of a hold");
    equal((await scene.report()).running, 0, "Items in work");
    await scene.finish({ lease }, { type: "release" });
    equal(await scene.engine.keys({ queue: scene.queue, limit: 10 }), [], "Keys that have something");
  },

  "a lease that was renewed shows its new deadline": async (scene) => {
    await scene.submit("item", { id: "item" });
    const { lease } = await scene.claimOne();
    const held = present(await scene.hold("held"), "An idle key can be held");
    await scene.letPass(PASSING_MS);
    const renewedAt = scene.clock.wall();
    for (const each of [lease, held]) ok((await scene.renew(each)).ok, `The lease of ${each.key} is renewed`);
    const least = renewedAt + LONG_LEASE_MS - ROUNDING_MS;
    atLeast((await scene.find("item"))?.running?.deadline ?? 0, least, "The deadline in the report of the item");
    for (const leased of [true, false]) {
      const keys = await scene.engine.keys({ queue: scene.queue, limit: 10, leased });
      for (const name of ["item", "held"]) {
        const deadline = keys.find(({ key }) => key === name)?.running?.deadline ?? 0;
        atLeast(deadline, least, `The deadline of ${name} in the report of the keys${leased ? " under a lease" : ""}`);
      }
    }
  },

  "keys are reported with their states": async (scene) => {
    await scene.submit("running");
    for (const key of ["blocked", "paused blocked"]) await scene.submit(key);
    for (const grant of await scene.claimCount(3))
      if (grant.item.key !== "running") await scene.retry(grant, 3_600_000);
    await scene.submit("running");
    await scene.submit("ready", { level: "low" });
    await scene.submit("ready");
    await scene.submit("delayed", { delayMs: 3_600_000 });
    await scene.hold("held");
    await scene.submit("held");
    for (const key of ["paused", "paused blocked", "paused ready"])
      await scene.engine.pause({ queue: scene.queue, key, paused: true });
    await scene.submit("paused ready");
    const keys = await scene.engine.keys({ queue: scene.queue, limit: 100 });
    const seen = keys.map(({ key, state, paused, waiting, delayed }) => ({ key, state, paused, waiting, delayed }));
    equal<unknown>(
      seen,
      [
        { key: "blocked", state: "blocked", paused: false, waiting: 1, delayed: 0 },
        { key: "delayed", state: "idle", paused: false, waiting: 0, delayed: 1 },
        { key: "held", state: "held", paused: false, waiting: 1, delayed: 0 },
        { key: "paused", state: "idle", paused: true, waiting: 0, delayed: 0 },
        { key: "paused blocked", state: "blocked", paused: true, waiting: 1, delayed: 0 },
        { key: "paused ready", state: "ready", paused: true, waiting: 1, delayed: 0 },
        { key: "ready", state: "ready", paused: false, waiting: 2, delayed: 0 },
        { key: "running", state: "running", paused: false, waiting: 1, delayed: 0 },
      ],
      "The keys",
    );
  },

  "an item shows when it may run": async (scene) => {
    const before = scene.clock.wall();
    await scene.submit("delayed", { id: "delayed", delayMs: 3_600_000 });
    await scene.submit("blocked", { id: "blocked" });
    await scene.retry(await scene.claimOne(), 3_600_000);
    for (const [id, state] of [
      ["delayed", "delayed"],
      ["blocked", "waiting"],
    ] as const) {
      const report = await scene.find(id);
      equal(report?.state, state, `The state of ${id}`);
      atLeast(report?.dueAt ?? 0, before + 3_600_000 - 1, `When ${id} may run`);
    }
  },

  "queues are reported, each with its own counts": async (scene) => {
    const other = await scene.newQueue();
    await scene.submit("k", { level: "high" });
    await scene.submit("k2", { queue: other });
    const report = await scene.report();
    const high = { level: "high", waiting: 1 };
    equal(
      report.levels,
      [high, { level: "normal", waiting: 0 }, { level: "low", waiting: 0 }],
      "Items that wait per level",
    );
    const all = await scene.engine.queues({});
    for (const queue of [scene.queue, other])
      ok(
        all.some((one) => one.queue === queue),
        `Queue ${queue} is listed`,
      );
    equal(await scene.engine.queues({ queue: "never-declared" }), [], "A queue that was never declared");
    equal(keysOf(await scene.claimReady()), ["k"], "What one queue hands out");
  },

  "the check of a store finds no error": async (scene) => {
    const findings = await scene.engine.check();
    equal(
      findings.filter(({ severity }) => severity === "error"),
      [],
      "Errors found",
    );
  },
});

/** Everything about looking in and stepping in: what one can ask is part of "nothing is lost". */
export const inspected: readonly ConformanceCase[] = [...CANCELLING, ...LEASED, ...DEAD_LETTERS, ...REPORTS];

async function bury(scene: Scene, id: string): Promise<Accepted> {
  const accepted = await scene.submit("k", { id, text: `text of ${id}` });
  await scene.finish(await scene.claimOne(), { type: "dead", failure: { message: "no" } });
  return accepted;
}
