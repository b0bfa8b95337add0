import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { connect } from "../../../src/index.ts";
import { keyOf } from "../../../src/relay/keys/key-of.ts";
import {
  batonSource,
  DEFAULT_KEYS,
  type KeySettings,
  type RelayMessage,
  type Transform,
} from "../../../src/relay/index.ts";
import { ScriptedSource } from "./scripted-source.ts";
import { until } from "../../kit/until.ts";
import { fromSource, play, route, settingsOf, toFunction } from "./stage.ts";

/** A handler that notices when two work on one key, and ends when the test says so. */
function watchedWork(): {
  run: (message: RelayMessage) => Promise<void>;
  readonly begun: { readonly id: string; readonly key: string | undefined; readonly fence: number | undefined }[];
  readonly overlaps: string[];
  finish: (id: string) => void;
} {
  const begun: { id: string; key: string | undefined; fence: number | undefined }[] = [];
  const overlaps: string[] = [];
  const running = new Map<string, () => void>();
  const busy = new Set<string>();
  return {
    begun,
    overlaps,
    run: async ({ id, key, fence }) => {
      begun.push({ id, key, fence });
      if (key !== undefined && busy.has(key)) overlaps.push(key);
      if (key !== undefined) busy.add(key);
      await new Promise<void>((resolve) => running.set(id, resolve));
      if (key !== undefined) busy.delete(key);
    },
    finish: (id) => running.get(id)?.(),
  };
}

async function storeUrl(context: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "baton-relay-"));
  context.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  return `sqlite:${join(folder, "keys.db")}?synchronous=off`;
}

function keysIn(store: string, more: Partial<KeySettings> = {}): KeySettings {
  return { ...DEFAULT_KEYS, store, queue: "cars", ...more };
}

describe("messages of one key", () => {
  test("are delivered one at a time, across sources and relays, under rising fences", async (context) => {
    const keys = keysIn(await storeUrl(context));
    const work = watchedWork();
    const sources = ["a", "b", "c"].map((name) => new ScriptedSource(name));
    const [a, b, c] = sources;
    assert.ok(a && b && c);
    await play(context, settingsOf(route([a, b], toFunction(work.run), { concurrency: 4 }), { keys }));
    await play(context, settingsOf(route([c], toFunction(work.run), { concurrency: 4 }), { keys }));
    for (const source of sources) source.put(`${source.name}1`, { key: "car1" });
    const finished: string[] = [];
    for (let count = 1; count <= 3; count += 1) {
      await until(() => work.begun.length === count, `delivery ${count}`);
      const id = work.begun.at(-1)?.id ?? "";
      finished.push(id);
      work.finish(id);
    }
    await until(() => sources.every(({ told }) => told.length === 1), "all to be acknowledged");
    assert.deepEqual(work.overlaps, []);
    assert.deepEqual(finished.toSorted(), ["a1", "b1", "c1"]);
    const fences = work.begun.map(({ fence }) => fence ?? 0);
    assert.ok(
      fences[0] !== undefined && fences.every((fence, index) => index === 0 || fence > (fences[index - 1] ?? 0)),
    );
  });

  test("that wait for it occupy no slot; the most urgent of them is next", async (context) => {
    const keys = keysIn(await storeUrl(context));
    const work = watchedWork();
    const [high, low] = [new ScriptedSource("high"), new ScriptedSource("low")];
    const { relay } = await play(
      context,
      settingsOf(route([high, low], toFunction(work.run), { concurrency: 2 }), { keys }),
    );
    low.put("l1", { key: "car1" });
    await until(() => work.begun.length === 1, "the first");
    low.put("l2", { key: "car1" });
    low.put("l3", { key: "car1" });
    await until(() => relay.report().routes[0]?.waitingForKey === 2, "two to wait");
    high.put("h1", { key: "car1" });
    await until(() => relay.report().routes[0]?.waitingForKey === 3, "three to wait");
    // One slot is used. Another key has the other one.
    low.put("other", { key: "car2" });
    await until(() => work.begun.length === 2, "the other key");
    assert.equal(work.begun[1]?.id, "other");
    for (const id of ["l1", "l2", "h1", "l3"]) {
      await until(() => work.begun.some((one) => one.id === id), id);
      work.finish(id);
    }
    // The first that waited had asked already; behind it the more urgent goes first.
    assert.deepEqual(
      work.begun.map(({ id }) => id),
      ["l1", "other", "l2", "h1", "l3"],
    );
    work.finish("other");
    await until(() => low.told.length === 4, "all to be acknowledged");
    assert.deepEqual(work.overlaps, []);
  });

  test("wait no longer for one that was handled when its source is slow to hear so", async (context) => {
    const keys = keysIn(await storeUrl(context));
    const source = new ScriptedSource("cars");
    const begun: string[] = [];
    await play(
      context,
      settingsOf(
        route(
          [source],
          toFunction(({ id }) => void begun.push(id)),
        ),
        { keys },
      ),
    );
    const silent = source.put("1", { key: "car1" });
    const silence = Promise.withResolvers<void>();
    silent.acknowledge = () => silence.promise;
    await until(() => begun.length === 1, "the first");
    source.put("2", { key: "car1" });
    await until(() => source.told.includes("acknowledged 2"), "the second, though the first is never told");
    silence.resolve();
  });

  test("go back without counting when too many wait, or for too long", async (context) => {
    const keys = keysIn(await storeUrl(context), { waiting: 1, waitMs: 200, awayMs: 60_000 });
    const work = watchedWork();
    const source = new ScriptedSource("cars");
    const { relay } = await play(context, settingsOf(route([source], toFunction(work.run)), { keys }));
    source.put("1", { key: "car1" });
    await until(() => work.begun.length === 1, "the first");
    source.put("2", { key: "car1" });
    await until(() => relay.report().routes[0]?.waitingForKey === 1, "the second to wait");
    source.put("3", { key: "car1" });
    await until(() => source.told.includes("back 3 uncounted later"), "the third to go back");
    await until(() => source.told.includes("back 2 uncounted later"), "the second to go back");
    work.finish("1");
    await until(() => source.told.includes("acknowledged 1"), "the first to end");
  });

  test("are kept apart from those that a Baton worker works on, and from holds", async (context) => {
    const store = await storeUrl(context);
    const baton = await connect(store);
    context.after(() => baton.close());
    const held = await baton.queue("cars").hold("car1");
    const work = watchedWork();
    const source = new ScriptedSource("cars");
    const { relay } = await play(context, settingsOf(route([source], toFunction(work.run)), { keys: keysIn(store) }));
    source.put("1", { key: "car1" });
    await until(() => relay.report().routes[0]?.waitingForKey === 1, "it to wait for the hold");
    await held.release();
    await until(() => work.begun.length === 1, "it to begin when the hold is gone");
    work.finish("1");
    await until(() => source.told.length === 1, "its end");
  });

  test("of a Baton queue that keeps the keys itself need no second lease, whatever its address", async (context) => {
    const store = await storeUrl(context);
    const other = store.replace("/keys.db", "/./keys.db");
    assert.notEqual(other, store);
    const baton = await connect(store);
    context.after(() => baton.close());
    const [first, second] = [
      await baton.queue("cars").submit("car1", "x", { id: "1" }),
      await baton.queue("cars").submit("car1", "y", { id: "2" }),
    ];
    const settings = {
      ...fromSource(new ScriptedSource("cars")),
      open: () => batonSource({ name: "cars", store, queue: "cars" }),
    };
    await play(
      context,
      settingsOf(
        route(
          [settings],
          toFunction(() => undefined),
        ),
        { keys: keysIn(other) },
      ),
    );
    assert.equal((await first.outcome({ timeout: "45s" })).state, "done");
    assert.equal((await second.outcome({ timeout: "45s" })).state, "done");
  });

  test("are held twice where two stores have a queue of the same name", async (context) => {
    const [store, other] = [await storeUrl(context), await storeUrl(context)];
    const [baton, keeper] = [await connect(store), await connect(other)];
    context.after(() => Promise.all([baton.close(), keeper.close()]));
    await baton.queue("cars").submit("car1", "x", { id: "1" });
    const settings = {
      ...fromSource(new ScriptedSource("cars")),
      open: () => batonSource({ name: "cars", store, queue: "cars" }),
    };
    const work = watchedWork();
    await play(context, settingsOf(route([settings], toFunction(work.run)), { keys: keysIn(other) }));
    await until(() => work.begun.length === 1, "the delivery");
    await assert.rejects(keeper.queue("cars").hold("car1", { wait: 0 }), { code: "LOCK_BUSY" });
    work.finish("1");
  });

  test("that no store takes is bad data, and is not tried for ever", async (context) => {
    const keys = keysIn(await storeUrl(context));
    const source = new ScriptedSource("cars");
    await play(
      context,
      settingsOf(
        route(
          [source],
          toFunction(() => undefined),
        ),
        { keys },
      ),
    );
    source.put("1", { key: "k".repeat(600) });
    source.put("2", { key: "car2" });
    await until(() => source.told.length === 2, "both");
    assert.match(source.told.find((told) => told.startsWith("buried")) ?? "", /^buried 1: key: expected .* 512 bytes/);
  });

  test("that waits when the relay stops goes back at once", async (context) => {
    const keys = keysIn(await storeUrl(context));
    const work = watchedWork();
    const source = new ScriptedSource("cars");
    const { relay } = await play(context, settingsOf(route([source], toFunction(work.run)), { keys }));
    source.put("1", { key: "car1" });
    await until(() => work.begun.length === 1, "the first");
    source.put("2", { key: "car1" });
    await until(() => relay.report().routes[0]?.waitingForKey === 1, "the second to wait");
    const stopping = relay.stop({ graceMs: 10_000 });
    await until(() => source.told.includes("back 2 uncounted"), "the second to go back");
    work.finish("1");
    assert.deepEqual(await stopping, { finished: 1, givenBack: 1, abandoned: 0 });
  });

  test("that would begin to wait for it when the relay is stopping already goes back at once", async (context) => {
    const keys = keysIn(await storeUrl(context));
    const work = watchedWork();
    const source = new ScriptedSource("cars");
    const transforming = Promise.withResolvers<void>();
    const transformed = Promise.withResolvers<void>();
    const slow: Transform = {
      name: "slow",
      apply: async (content) => {
        if (!Buffer.from(content.data).includes("2")) return content;
        transforming.resolve();
        await transformed.promise;
        return content;
      },
    };
    const { relay } = await play(
      context,
      settingsOf(route([source], toFunction(work.run), { transforms: [slow] }), { keys }),
    );
    source.put("1", { key: "car1" });
    await until(() => work.begun.length === 1, "the first");
    source.put("2", { key: "car1" });
    await transforming.promise;
    const stopping = relay.stop({ graceMs: 60_000 });
    transformed.resolve();
    await until(() => source.told.includes("back 2 uncounted"), "the second to go back");
    work.finish("1");
    assert.deepEqual(await stopping, { finished: 1, givenBack: 1, abandoned: 0 });
  });
});

test("a key is found in an attribute, by a JSON pointer, or where the source has it", () => {
  const content = {
    data: Buffer.from('{"customer":{"id":17},"a/b":{"m~n":"x"},"list":["zero","one"],"none":null}'),
    contentType: "application/json",
    attributes: { "Customer-Id": "c9" },
  };
  assert.equal(keyOf(content, "own", undefined), "own");
  assert.equal(keyOf(content, undefined, undefined), undefined);
  assert.equal(keyOf(content, "own", { from: "attribute", name: "customer-id" }), "c9");
  assert.equal(keyOf(content, "own", { from: "json", pointer: "/customer/id" }), "17");
  assert.equal(keyOf(content, "own", { from: "json", pointer: "/a~1b/m~0n" }), "x");
  assert.equal(keyOf(content, "own", { from: "json", pointer: "/list/1" }), "one");
  for (const pointer of ["/none", "/missing", "/customer", "/list/length", "/constructor/name"])
    assert.throws(() => keyOf(content, "own", { from: "json", pointer }), /no text and no number/);
  assert.throws(() => keyOf(content, "own", { from: "attribute", name: "missing" }), /no attribute missing/);
  assert.throws(
    () => keyOf({ ...content, data: Buffer.from("no") }, "own", { from: "json", pointer: "/a" }),
    /not JSON/,
  );
});
