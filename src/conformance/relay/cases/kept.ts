import { setTimeout as wait } from "node:timers/promises";
import { atLeast, equal, ok } from "../../expect.ts";
import { type SourceCase, sourceCasesOf } from "../case.ts";
import { textOf } from "../scene.ts";

export const kept: readonly SourceCase[] = [
  ...sourceCasesOf("kept", {
    "a message in hand is nobody else's": async (scene) => {
      const stage = await scene.queue();
      const [ann, ben] = [await stage.open(), await stage.open()];
      await stage.send("mine");
      const message = await stage.receive(ann);
      equal((await stage.tryFor(ben, 500)).length, 0, "Another process finds nothing meanwhile");
      await message.acknowledge();
    },

    "a message that is extended stays for much longer than one hold": async (scene) => {
      const stage = await scene.mortal();
      const [ann, ben] = [await stage.open(), await stage.open()];
      await stage.send("long work");
      const message = await stage.receive(ann);
      using _keep = stage.keep(message);
      equal((await stage.tryFor(ben, scene.holdMs * 3)).length, 0, "Another process finds nothing for three holds");
      ok(!message.lost.aborted, "It is not lost");
      await message.acknowledge();
    },

    "a message whose holder is gone comes again": async (scene) => {
      const stage = await scene.mortal();
      const [ann, ben] = [await stage.open(), await stage.open()];
      await stage.send("orphan");
      await stage.receive(ann);
      await ann.close();
      equal(textOf(await stage.receive(ben)), "orphan", "Another process gets it when the hold has run out");
    },

    "a message that was lost cannot be acknowledged": async (scene) => {
      const stage = await scene.mortal();
      const [ann, ben] = [await stage.open(), await stage.open()];
      await stage.send("lost");
      const lost = await stage.receive(ann);
      // One that keeps itself is lost only with its process, which other cases show.
      if (lost.holdMs === 0) return await lost.acknowledge();
      const again = await stage.receive(ben);
      using _keep = stage.keep(again);
      const refused = await lost.acknowledge().then(
        () => false,
        () => true,
      );
      ok(refused, "An acknowledgement of a message that is not ours any more is refused");
      await again.giveBack({ delayMs: 0, countAttempt: true });
      equal(textOf(await stage.receive(ben)), "lost", "It did not take the message from whoever has it");
    },
  }),

  ...sourceCasesOf(
    "kept",
    {
      "deliveries are counted": async (scene) => {
        const stage = await scene.mortal();
        const [ann, ben] = [await stage.open(), await stage.open()];
        await stage.send("counted");
        equal((await stage.receive(ann)).attempt, 1, "The first delivery is number 1");
        await ann.close();
        // Some keep what they hold a little longer than they say.
        await wait(scene.holdMs);
        atLeast((await stage.receive(ben)).attempt ?? 0, 2, "The next has a higher number");
      },
    },
    ["attempts"],
  ),
];
