import type { Submission } from "../../engine/port.ts";
import { type ConformanceCase, casesOf } from "../case.ts";
import { atMost, equal, ok } from "../expect.ts";
import { keysOf } from "../scene.ts";

/** Keys that stores are tempted to take for something else: wildcards, separators, names of their own, each other. */
const ODD_KEYS: readonly string[] = [
  "*",
  ">",
  ".",
  "..",
  "a.b",
  "a/b",
  "a b",
  " a",
  "a ",
  "a",
  "A",
  "%",
  "_",
  "a'b",
  'a"b',
  "a\\b",
  "a\nb",
  "a\tb",
  "--",
  ";",
  "$1",
  "{}",
  "[a]",
  "0",
  "00",
  "null",
  "undefined",
  "__proto__",
  "constructor",
  "ä",
  "a\u0308",
  "ﬀ",
  "🚗",
  "👩‍👩‍👧",
  "日本",
  "\u200b",
  "\uffff",
  "k".repeat(512),
  `${"k".repeat(511)}K`,
  "ü".repeat(256),
];

/** The default limit of a payload. */
const LARGE_BYTES = 256 * 1024;

export const exact: readonly ConformanceCase[] = casesOf("G10", {
  "odd keys are kept apart": async (scene) => {
    await scene.engine.submit(ODD_KEYS.flatMap((key) => [scene.entry(key), scene.entry(key)]));
    const ready = await scene.claimReady();
    equal(keysOf(ready).toSorted(), ODD_KEYS.toSorted(), "Each key once");
    for (const { item } of ready) equal(item.payload.body, item.key, "The payload that was submitted for the key");
    const [first] = ready;
    ok(first !== undefined, "A key was handed out");
    await scene.done(first);
    equal(keysOf(await scene.claimReady()), [first.item.key], "Only the key that was settled is ready again");
  },

  "odd keys are listed exactly, in the order of their bytes, page by page": async (scene) => {
    await scene.engine.submit(ODD_KEYS.map((key) => scene.entry(key)));
    const expected = ODD_KEYS.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    const listed: string[] = [];
    for (let after: string | undefined; listed.length <= ODD_KEYS.length;) {
      const page = await scene.engine.keys({ queue: scene.queue, limit: 7, ...(after === undefined ? {} : { after }) });
      atMost(page.length, 7, "Keys on a page of seven");
      listed.push(...page.map(({ key }) => key));
      after = page.at(-1)?.key;
      if (after === undefined) break;
    }
    equal(listed, expected, "The pages together");
  },

  "odd keys can be held and paused one by one": async (scene) => {
    for (const key of ["*", "a'b", "🚗"]) ok((await scene.hold(key)) !== undefined, `Key ${key} can be held`);
    for (const key of [">", "a\nb", "__proto__"]) await scene.engine.pause({ queue: scene.queue, key, paused: true });
    await scene.engine.submit(ODD_KEYS.map((key) => scene.entry(key)));
    const out = new Set(["*", "a'b", "🚗", ">", "a\nb", "__proto__"]);
    const expected = ODD_KEYS.filter((key) => !out.has(key));
    equal(keysOf(await scene.claimReady()), expected, "The keys that are ready");
  },

  "text comes back exactly": async (scene) => {
    const texts = ["", " ", "null", '{"a":1}', "a\u0000b", "\r\n", "\ufeffbom", "日本 🚗", "x".repeat(LARGE_BYTES)];
    for (const text of texts) {
      await scene.submit("k", { payload: { type: "text/plain; charset=utf-8", body: text } });
      const grant = await scene.claimOne();
      ok(grant.item.payload.body === text, `Text of ${text.length} characters comes back exactly`);
      equal(grant.item.payload.type, "text/plain; charset=utf-8", "The content type");
      await scene.done(grant);
    }
  },

  "bytes come back exactly": async (scene) => {
    const all = Uint8Array.from({ length: LARGE_BYTES }, (_, index) => (index * 31) % 256);
    for (const body of [new Uint8Array(0), new Uint8Array([0]), all.subarray(3, 700), all]) {
      await scene.submit("k", { payload: { type: "application/octet-stream", body } });
      const grant = await scene.claimOne();
      const found = grant.item.payload.body;
      ok(found instanceof Uint8Array, "Bytes come back as bytes");
      ok(Buffer.compare(found, body) === 0, `${body.length} bytes come back exactly`);
      await scene.done(grant);
    }
  },

  "headers come back exactly": async (scene) => {
    const odd = Object.fromEntries([
      ["__proto__", "p"],
      ["constructor", "c"],
    ]);
    const all: readonly Readonly<Record<string, string>>[] = [
      {},
      { traceparent: "00-1", "x y": "", "🚗": "a\n'\"b" },
      odd,
    ];
    for (const headers of all) {
      await scene.submit("k", { headers });
      const grant = await scene.claimOne();
      const found = Object.entries(grant.item.headers ?? {});
      equal(new Map(found), new Map(Object.entries(headers)), "The headers");
      await scene.done(grant);
    }
    await scene.submit("k");
    equal((await scene.claimOne()).item.headers, undefined, "The headers of an item without any");
  },

  "an item carries what it was submitted with": async (scene) => {
    const { id, at } = await scene.submit("k", { id: "item", level: "low" });
    const { item } = await scene.claimOne();
    const { queue, key, level, submittedAt, attempt } = item;
    equal<unknown>(
      { id: item.id, queue, key, level, submittedAt, attempt },
      { id, queue: scene.queue, key: "k", level: "low", submittedAt: at, attempt: 1 },
      "The item",
    );
  },

  "what the submitter changes afterwards does not change the item": async (scene) => {
    const body = new Uint8Array([1, 2, 3]);
    const headers: Record<string, string> = { a: "1" };
    const entry: Submission = scene.entry("k", { payload: { type: "application/octet-stream", body }, headers });
    const submitting = scene.engine.submit([entry]);
    await submitting;
    body.fill(9);
    headers["a"] = "9";
    const first = await scene.claimOne();
    const found = first.item.payload.body;
    ok(found instanceof Uint8Array, "Bytes come back as bytes");
    equal([[...found], first.item.headers], [[1, 2, 3], { a: "1" }], "Bytes and headers as they were submitted");
    found.fill(7);
    await scene.finish(first, { type: "release" });
    const again = (await scene.claimOne()).item.payload.body;
    equal(again instanceof Uint8Array ? [...again] : [], [1, 2, 3], "The bytes after a handler changed its own");
  },
});
