import { equal, ok } from "../../expect.ts";
import { type SourceCase, sourceCasesOf } from "../case.ts";
import { textOf } from "../scene.ts";

export const ordered: readonly SourceCase[] = [
  ...sourceCasesOf(
    "ordered",
    {
      "messages of one key come one after the other, in order": async (scene) => {
        const stage = await scene.queue();
        const [ann, ben] = [await stage.open(), await stage.open()];
        await stage.send({ data: "1", key: "car" }, { data: "2", key: "car" }, { data: "3", key: "car" });
        const first = await stage.receive(ann);
        equal(first.key, "car", "The message says its key");
        equal((await stage.tryFor(ben, 500)).length, 0, "Nobody gets the second while the first is in hand");
        await first.acknowledge();
        for (const expected of ["2", "3"]) {
          const next = await stage.receive(ben);
          equal(textOf(next), expected, "They come in the order in which they were sent");
          await next.acknowledge();
        }
      },

      "a key in hand does not hold up another": async (scene) => {
        const stage = await scene.queue();
        const source = await stage.open();
        await stage.send({ data: "a1", key: "a" });
        equal(textOf(await stage.receive(source)), "a1", "The first key's message comes");
        await stage.send({ data: "a2", key: "a" }, { data: "b1", key: "b" });
        equal(textOf(await stage.receive(source)), "b1", "The other key's message comes meanwhile");
      },
    },
    ["keys"],
  ),

  ...sourceCasesOf("closed", {
    "a source that is closed ends what waits": async (scene) => {
      const stage = await scene.queue();
      const source = await stage.open();
      const over = new AbortController();
      const receiving = source.receive({ max: 1, signal: over.signal }).catch(() => []);
      over.abort();
      await source.close();
      equal((await receiving).length, 0, "The receive that waited has ended");
    },

    "messages sent before anybody listens are there for whoever comes": async (scene) => {
      const stage = await scene.queue();
      await stage.send("early");
      const source = await stage.open();
      const message = await stage.receive(source);
      ok(textOf(message) === "early", "A message waits for its first receiver");
    },
  }),
];
