import { type ConformanceCase, casesOf } from "../case.ts";
import { equal, present } from "../expect.ts";
import { type Scene, textOf } from "../scene.ts";

export const ordered: readonly ConformanceCase[] = casesOf("G5", {
  "items of a key run in the order of arrival": async (scene) => {
    const texts = numbered(20);
    for (const text of texts) await scene.submit("k", { text });
    equal(await workOff(scene, 20), texts, "The order");
  },

  "items of a batch run in the order of the batch": async (scene) => {
    const texts = numbered(90);
    await scene.engine.submit(texts.map((text, index) => scene.entry(`k${index % 3}`, { text })));
    const done = await workOff(scene, 90);
    for (const key of [0, 1, 2]) {
      const ofKey = (all: readonly string[]): string[] => all.filter((text) => Number(text) % 3 === key);
      equal(ofKey(done), ofKey(texts), `The order of key k${key}`);
    }
  },

  "submissions that are not waited for keep their order": async (scene) => {
    const texts = numbered(30);
    await Promise.all(texts.map((text) => scene.submit("k", { text })));
    equal(await workOff(scene, 30), texts, "The order of calls through one handle");
  },

  "order holds across handles": async (scene) => {
    const handles = [scene.engine, await scene.open()];
    const texts = numbered(10);
    for (const [index, text] of texts.entries())
      await scene.submit("k", { text }, present(handles[index % 2], "A handle"));
    equal(await workOff(scene, 10), texts, "The order");
  },

  "the more urgent item of a key goes first": async (scene) => {
    for (const level of ["low", "normal", "high", "low", "high", "normal"]) {
      await scene.submit("k", { level, text: `${level} ${(await scene.report()).waiting}` });
    }
    const expected = ["high 2", "high 4", "normal 1", "normal 5", "low 0", "low 3"];
    equal(await workOff(scene, 6), expected, "The order");
  },

  "urgent items that come while the key is in work go next": async (scene) => {
    await scene.submit("k", { text: "running" });
    const running = await scene.claimOne();
    await scene.submit("k", { text: "normal" });
    await scene.submit("k", { text: "low", level: "low" });
    await scene.submit("k", { text: "high", level: "high" });
    await scene.done(running);
    equal(await workOff(scene, 3), ["high", "normal", "low"], "The order");
  },

  "an item that an urgent one passed keeps its place and its attempts": async (scene) => {
    await scene.submit("k", { text: "first" });
    await scene.retry(await scene.claimOne());
    await scene.submit("k", { text: "second" });
    await scene.submit("k", { text: "urgent", level: "high" });
    const urgent = await scene.claimOne();
    equal(textOf(urgent), "urgent", "The urgent item goes first");
    await scene.done(urgent);
    const first = await scene.claimOne();
    equal([textOf(first), first.item.attempt], ["first", 2], "The item that was passed");
    await scene.done(first);
    equal(await workOff(scene, 1), ["second"], "What came after it");
  },

  "a delayed item takes its place when it is due": async (scene) => {
    await scene.submit("k", { text: "early" });
    const early = await scene.claimOne();
    await scene.submit("k", { text: "delayed", delayMs: 100 });
    await scene.letPass(150);
    await scene.submit("k", { text: "late" });
    await scene.done(early);
    equal(await workOff(scene, 2), ["delayed", "late"], "The order");
  },

  "a delayed item holds nobody up": async (scene) => {
    await scene.submit("k", { text: "delayed", delayMs: 3_600_000 });
    await scene.submit("k", { text: "early" });
    equal(textOf(await scene.claimOne()), "early", "The item that is not delayed");
  },

  "mode latest keeps the newest": async (scene) => {
    await scene.submit("k", { text: "running" });
    const running = await scene.claimOne();
    const ids: string[] = [];
    for (const text of ["a", "b", "c"]) {
      const { id, replaced } = await scene.submit("k", { text, mode: "latest" });
      equal(replaced, ids.slice(-1), "What was replaced");
      ids.push(id);
    }
    await scene.done(running);
    const ready = await scene.claimReady();
    equal(ready.map(textOf), ["c"], "What is left");
  },

  "mode latest replaces at every level, and what waits out a back-off": async (scene) => {
    await scene.submit("k", { text: "failed", level: "high" });
    await scene.retry(await scene.claimOne(), 3_600_000);
    await scene.submit("k", { text: "low", level: "low" });
    const { replaced } = await scene.submit("k", { text: "newest", mode: "latest" });
    equal(replaced.length, 2, "Items that were replaced");
    const ready = await scene.claimReady();
    equal(ready.map(textOf), ["newest"], "What is ready");
    equal((await scene.report()).waiting, 0, "What else waits");
  },
});

export function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, index) => String(index));
}

/** Takes and settles one by one; the texts in the order in which they came. */
export async function workOff(scene: Scene, count: number): Promise<string[]> {
  const texts: string[] = [];
  for (let index = 0; index < count; index += 1) {
    const grant = await scene.claimOne();
    texts.push(textOf(grant));
    await scene.done(grant);
  }
  return texts;
}
