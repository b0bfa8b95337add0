import { setTimeout as wait } from "node:timers/promises";
import { systemClock } from "../../../domain/clock.ts";
import { atMost, equal, ok } from "../../expect.ts";
import { type SourceCase, sourceCasesOf } from "../case.ts";
import { textOf } from "../scene.ts";

/** What is said to be at once may take the round trips of a busy machine, but not a poll of seconds: one of several tries shows it. */
const SOON_MS = 1_500;
const TRIES = 3;

export const received: readonly SourceCase[] = [
  ...sourceCasesOf("received", {
    "a message arrives as it was sent": async (scene) => {
      const stage = await scene.queue();
      const source = await stage.open();
      await stage.send('{"car":"déjà vu 🚗"}');
      const message = await stage.receive(source);
      equal(textOf(message), '{"car":"déjà vu 🚗"}', "The data is what was sent");
      ok(message.id !== "", "A message has an id");
      await message.acknowledge();
    },

    "a receive that waits has an arrival at once": async (scene) => {
      const stage = await scene.queue();
      const source = await stage.open();
      await expectSoon("An arrival is received at once, in milliseconds", async () => {
        const receiving = stage.receive(source);
        // Long enough to be waiting in earnest.
        await wait(300);
        const began = systemClock.monotonic();
        await stage.send("late");
        const message = await receiving;
        const tookMs = systemClock.monotonic() - began;
        equal(textOf(message), "late", "The waiting receive has the message that arrived");
        await message.acknowledge();
        return tookMs;
      });
    },

    "a receive that waits ends when its signal fires": async (scene) => {
      const stage = await scene.queue();
      const source = await stage.open();
      await expectSoon("A receive is given up at once, in milliseconds", async () => {
        const over = new AbortController();
        const receiving = source.receive({ max: 1, signal: over.signal });
        await wait(100);
        const began = systemClock.monotonic();
        over.abort();
        equal((await receiving).length, 0, "Nothing was there to be received");
        return systemClock.monotonic() - began;
      });
    },

    "a message that comes after a receive was given up is for the next one": async (scene) => {
      const stage = await scene.queue();
      const source = await stage.open();
      const over = new AbortController();
      const receiving = source.receive({ max: 1, signal: over.signal });
      await wait(100);
      over.abort();
      await receiving;
      await stage.send("next");
      equal(textOf(await stage.receive(source)), "next", "The message went to the next receive, not to nobody");
    },

    "a try on an empty queue answers at once with nothing": async (scene) => {
      const stage = await scene.queue();
      const source = await stage.open();
      await expectSoon("A try does not wait, in milliseconds", async () => {
        const began = systemClock.monotonic();
        equal((await stage.try(source, 10)).length, 0, "An empty queue has nothing");
        return systemClock.monotonic() - began;
      });
    },

    "tries find what is there": async (scene) => {
      const stage = await scene.queue();
      const source = await stage.open();
      await stage.send("waiting");
      const [message] = await stage.tryFor(source, 10_000);
      ok(message !== undefined, "A message that waits is found by trying");
      equal(textOf(message), "waiting", "It is the one that was sent");
    },

    "a receive brings no more messages than were asked for, and each one once": async (scene) => {
      const stage = await scene.queue();
      const sources = [await stage.open(), await stage.open()];
      const sent = Array.from({ length: 12 }, (_, index) => `m${index}`);
      await stage.send(...sent.map((data) => ({ data, key: data })));
      const found: string[] = [];
      await Promise.all(
        sources.map(async (source) => {
          while (found.length < sent.length) {
            const messages = await stage.try(source, 3);
            atMost(messages.length, 3, "No more messages come than were asked for");
            for (const message of messages) {
              found.push(textOf(message));
              await message.acknowledge();
            }
          }
        }),
      );
      equal(found.toSorted(), sent.toSorted(), "Every message is received, and none twice");
    },
  }),

  ...sourceCasesOf(
    "received",
    {
      "attributes arrive beside the data": async (scene) => {
        const stage = await scene.queue();
        const source = await stage.open();
        await stage.send({ data: "x", key: "k", attributes: { customer: "c-17", kind: "order" } });
        const { attributes } = await stage.receive(source);
        equal(attributes["customer"], "c-17", "An attribute arrives");
        equal(attributes["kind"], "order", "Every attribute arrives");
      },
    },
    ["attributes"],
  ),
];

/** One try in time is enough: where something waits for a poll, every one is late. */
async function expectSoon(promise: string, tryOnce: () => Promise<number>): Promise<void> {
  let bestMs = Infinity;
  for (let tries = 0; tries < TRIES && bestMs > SOON_MS; tries += 1) bestMs = Math.min(bestMs, await tryOnce());
  atMost(bestMs, SOON_MS, promise);
}
