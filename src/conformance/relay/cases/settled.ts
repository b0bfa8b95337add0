import { systemClock } from "../../../domain/clock.ts";
import { atLeast, equal, ok, present } from "../../expect.ts";
import { type SourceCase, sourceCasesOf } from "../case.ts";
import { textOf } from "../scene.ts";

const DELAY_MS = 1_500;
/** Queues that count in whole seconds may round a delay down by a part of one. */
const EARLY_MS = 600;

export const settled: readonly SourceCase[] = [
  ...sourceCasesOf("settled", {
    "an acknowledged message does not come again": async (scene) => {
      const stage = await scene.mortal();
      const source = await stage.open();
      await stage.send("done");
      await (await stage.receive(source)).acknowledge();
      equal((await stage.tryFor(source, scene.holdMs * 2)).length, 0, "It is gone, also after the hold has passed");
    },

    "acknowledgements of many are all kept": async (scene) => {
      const stage = await scene.mortal();
      const source = await stage.open();
      const sent = Array.from({ length: 15 }, (_, index) => ({ data: `m${index}`, key: `k${index}` }));
      await stage.send(...sent);
      const acknowledging: Promise<void>[] = [];
      while (acknowledging.length < sent.length) {
        const messages = await stage.try(source, 10);
        acknowledging.push(...messages.map((message) => message.acknowledge()));
      }
      await Promise.all(acknowledging);
      equal((await stage.tryFor(source, scene.holdMs * 2)).length, 0, "None comes again");
    },

    "a message given back comes again at once": async (scene) => {
      const stage = await scene.queue();
      const [ann, ben] = [await stage.open(), await stage.open()];
      await stage.send("again");
      await (await stage.receive(ann)).giveBack({ delayMs: 0, countAttempt: false });
      const message = await stage.receive(ben);
      equal(textOf(message), "again", "Another process gets it without waiting for the hold to pass");
      await message.acknowledge();
    },
  }),

  ...sourceCasesOf(
    "settled",
    {
      "a message given back with a delay stays away for it": async (scene) => {
        const stage = await scene.queue();
        const source = await stage.open();
        await stage.send("later");
        const began = systemClock.monotonic();
        await (await stage.receive(source)).giveBack({ delayMs: DELAY_MS, countAttempt: true });
        equal(textOf(await stage.receive(source)), "later", "It comes again");
        atLeast(systemClock.monotonic() - began, DELAY_MS - EARLY_MS, "It stays away for its delay, in milliseconds");
      },
    },
    ["delay"],
  ),

  ...sourceCasesOf(
    "settled",
    {
      "a message given back to be counted has the next number": async (scene) => {
        const stage = await scene.queue();
        const source = await stage.open();
        await stage.send("second");
        await (await stage.receive(source)).giveBack({ delayMs: 0, countAttempt: true });
        equal((await stage.receive(source)).attempt, 2, "The second delivery is number 2");
      },
    },
    ["attempts"],
  ),

  ...sourceCasesOf(
    "settled",
    {
      "a message given back uncounted keeps its number": async (scene) => {
        const stage = await scene.queue();
        const source = await stage.open();
        await stage.send("first");
        await (await stage.receive(source)).giveBack({ delayMs: 0, countAttempt: false });
        equal((await stage.receive(source)).attempt, 1, "The next delivery is number 1 again");
      },
    },
    ["attempts", "uncount"],
  ),

  ...sourceCasesOf(
    "settled",
    {
      "a buried message is among the dead letters, and does not come again": async (scene) => {
        const stage = await scene.mortal();
        const source = await stage.open();
        await stage.send("hopeless");
        const message = await stage.receive(source);
        await present(message.bury, "A source with dead letters can bury")("no hope");
        equal((await stage.tryFor(source, scene.holdMs * 2)).length, 0, "It does not come again");
        const buried = await stage.buried();
        ok(buried.includes("hopeless"), `It is among the dead letters, which are ${JSON.stringify(buried)}`);
      },
    },
    ["bury"],
  ),
];
