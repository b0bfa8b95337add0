import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { strictChoice, weightedChoice } from "../../../src/relay/choice/choice.ts";
import type { RelayMessage } from "../../../src/relay/index.ts";
import type { SourceMessage } from "../../../src/relay/source.ts";
import { ScriptedSource } from "./scripted-source.ts";
import { until } from "../../kit/until.ts";
import { fromSource, play, route, settingsOf, toFunction } from "./stage.ts";

test("strict choice gives all the room to the most urgent that may have something", () => {
  const choice = strictChoice();
  assert.deepEqual(choice.plan([0, 1], 5), [{ source: 0, max: 5 }]);
  assert.deepEqual(choice.plan([1], 5), [{ source: 1, max: 5 }]);
  assert.deepEqual(choice.plan([], 5), []);
});

test("weighted choice shares by weight, and passes nobody over for long", () => {
  const choice = weightedChoice([8, 1, 1]);
  const taken = [0, 0, 0];
  let sinceLast = 0;
  let longest = 0;
  for (let message = 0; message < 1_000; message += 1) {
    const [ask] = choice.plan([0, 1, 2], 1);
    assert.ok(ask);
    choice.took(ask.source, 1);
    taken[ask.source] = (taken[ask.source] ?? 0) + 1;
    sinceLast = ask.source === 2 ? 0 : sinceLast + 1;
    longest = Math.max(longest, sinceLast);
  }
  assert.deepEqual(taken, [800, 100, 100]);
  assert.ok(longest <= 10, `The least urgent was passed over ${longest} times in a row.`);
});

test("weighted choice does not save up time in which a source had nothing", () => {
  const choice = weightedChoice([1, 1]);
  for (let message = 0; message < 100; message += 1) {
    choice.plan([0], 1);
    choice.took(0, 1);
  }
  const plan = choice.plan([0, 1], 10);
  assert.deepEqual(Object.fromEntries(plan.map(({ source, max }) => [source, max])), { 0: 5, 1: 5 });
});

/** A handler whose runs end when the test says so. */
function gate(): { run: (message: RelayMessage) => Promise<void>; begun: string[]; open: () => void } {
  const begun: string[] = [];
  let waiting: (() => void)[] = [];
  return {
    begun,
    run: (message) => {
      begun.push(message.id);
      return new Promise((resolve) => waiting.push(resolve));
    },
    open: () => {
      const all = waiting;
      waiting = [];
      for (const resolve of all) resolve();
    },
  };
}

describe("a relay's slots", () => {
  test("are filled from the urgent source first, and the others wait where they are", async (context) => {
    const [high, low] = [new ScriptedSource("high"), new ScriptedSource("low")];
    for (const id of ["l1", "l2", "l3"]) low.put(id);
    for (const id of ["h1", "h2", "h3", "h4"]) high.put(id);
    const { run, begun, open } = gate();
    await play(context, settingsOf(route([high, low], toFunction(run), { concurrency: 2 })));
    for (const count of [2, 4, 6, 7]) {
      await until(() => begun.length === count, `${count} deliveries`);
      assert.ok(high.mostInHand + low.mostInHand <= 4 && high.inHand + low.inHand <= 2);
      open();
    }
    assert.deepEqual(begun, ["h1", "h2", "h3", "h4", "l1", "l2", "l3"]);
    assert.equal(low.mostInHand, 2);
    await until(() => low.told.length === 3, "all to be acknowledged");
  });

  test("are filled at once by an arrival anywhere, also while a receive waits elsewhere", async (context) => {
    const [high, low] = [new ScriptedSource("high"), new ScriptedSource("low")];
    const begun: string[] = [];
    await play(
      context,
      settingsOf(
        route(
          [high, low],
          toFunction(({ id }) => void begun.push(id)),
          { concurrency: 1 },
        ),
      ),
    );
    await until(() => high.watches === 1 && low.watches === 1, "both to be watched");
    low.put("l1");
    await until(() => begun.length === 1, "the arrival below");
    await until(() => high.watches === 1 && low.watches === 1, "both to be watched again");
    high.put("h1");
    await until(() => begun.length === 2, "the arrival above");
  });

  test("that are full leave nothing waiting at the sources, and a second arrival for one slot goes back", async (context) => {
    const [high, low] = [new ScriptedSource("high"), new ScriptedSource("low")];
    const { run, begun, open } = gate();
    await play(context, settingsOf(route([high, low], toFunction(run), { concurrency: 1 })));
    await until(() => high.watches === 1 && low.watches === 1, "both to be watched");
    high.put("h1");
    low.put("l1");
    await until(() => begun.length === 1, "one of them to begin");
    await until(() => high.watches === 0 && low.watches === 0, "the watches to be called off");
    assert.deepEqual(begun, ["h1"]);
    await until(() => low.told.includes("back l1 uncounted"), "the other to go back");
    assert.equal(low.inHand, 0);
    open();
    await until(() => begun.length === 2, "the other to come again");
    open();
    await until(() => low.told.includes("acknowledged l1"), "its end");
  });

  test("are shared by weight, so that no source starves", async (context) => {
    const [high, low] = [new ScriptedSource("high"), new ScriptedSource("low")];
    for (let index = 0; index < 40; index += 1) {
      high.put(`h${index}`);
      low.put(`l${index}`);
    }
    const begun: string[] = [];
    const sources = [fromSource(high, { weight: 3 }), fromSource(low, { weight: 1 })];
    await play(
      context,
      settingsOf(
        route(
          sources,
          toFunction(({ id }) => void begun.push(id)),
          { choice: "weighted", concurrency: 1 },
        ),
      ),
    );
    await until(() => begun.length === 80, "all");
    const low20 = begun.slice(0, 20).filter((id) => id.startsWith("l")).length;
    assert.ok(low20 >= 4 && low20 <= 6, `Of the first 20 deliveries ${low20} are from the source of weight 1 of 4.`);
  });

  test("are not kept from one source by another that fails or hangs", async (context) => {
    const [broken, hanging, low] = [
      new ScriptedSource("broken"),
      new ScriptedSource("hanging"),
      new ScriptedSource("low"),
    ];
    broken.before = () => Promise.reject(new Error("no such queue"));
    hanging.before = ({ signal }) =>
      new Promise((resolve) => {
        if (!signal.aborted) signal.addEventListener("abort", () => resolve());
      });
    low.put("l1");
    const begun: string[] = [];
    const { events, relay } = await play(
      context,
      settingsOf(
        route(
          [broken, hanging, low],
          toFunction(({ id }) => void begun.push(id)),
        ),
      ),
    );
    await until(() => begun.length === 1, "the message of the source that is well");
    low.put("l2");
    await until(() => begun.length === 2, "the next");
    assert.ok(events.some((event) => event.type === "source-trouble" && event.source === "broken"));
    assert.deepEqual(relay.report().routes[0]?.failing, ["broken"]);
    broken.before = () => Promise.resolve();
    broken.put("b1");
    await until(() => begun.includes("b1"), "the source that is well again");
    assert.ok(events.some((event) => event.type === "source-well" && event.source === "broken"));
  });
});

test("a source that answers with no list is in trouble, and others are served", async (context) => {
  const [broken, well] = [new ScriptedSource("broken"), new ScriptedSource("well")];
  broken.receive = () => Promise.resolve(undefined as unknown as readonly SourceMessage[]);
  const { relay, events } = await play(
    context,
    settingsOf(
      route(
        [broken, well],
        toFunction(() => undefined),
      ),
    ),
  );
  well.put("a");
  await until(() => well.told.includes("acknowledged a"), "the other source");
  assert.deepEqual(relay.report().routes[0]?.failing, ["broken"]);
  const [trouble] = events.flatMap((event) => (event.type === "source-trouble" ? [event.error] : []));
  assert.match(String(trouble), /source broken received: expected a list of messages; found nothing/);
});
