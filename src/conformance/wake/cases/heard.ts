import { LONGEST_TEXT } from "../../../wake/port.ts";
import { equal, ok } from "../../expect.ts";
import { type WakeCase, wakeCasesOf } from "../case.ts";

const MANY = 1_000;

/** Publish and subscribe. */
export const heard: readonly WakeCase[] = wakeCasesOf("heard", {
  "all who listen hear what is published, also the sender": async (scene) => {
    const [sender, other] = [await scene.open(), await scene.open()];
    const channel = scene.channel("work");
    const ears = [await scene.listen(sender, channel), await scene.listen(other, channel)];
    await sender.publish([{ channel, text: "hello" }]);
    await scene.until(() => ears.every(({ texts }) => texts.length === 1), "A text is heard by all who listen");
    equal(
      ears.flatMap(({ texts }) => texts),
      ["hello", "hello"],
      "What was heard",
    );
  },

  "texts of one connection arrive in order, once": async (scene) => {
    const [sender, other] = [await scene.open(), await scene.open()];
    const channel = scene.channel("work");
    const ear = await scene.listen(other, channel);
    const texts = Array.from({ length: MANY }, (_, number) => String(number));
    await sender.publish(texts.slice(0, MANY / 2).map((text) => ({ channel, text })));
    await sender.publish(texts.slice(MANY / 2).map((text) => ({ channel, text })));
    await scene.until(() => ear.texts.length >= MANY, "Many texts are heard");
    equal(ear.texts, texts, "What was heard");
  },

  "channels are apart, also when they differ in case or by a dot": async (scene) => {
    const [sender, other] = [await scene.open(), await scene.open()];
    const names = ["a", "A", "a.b", "a-b", "a_b", "a.b.c", "ab"];
    const ears = await Promise.all(names.map((name) => scene.listen(other, scene.channel(name))));
    await sender.publish(names.map((name) => ({ channel: scene.channel(name), text: name })));
    await scene.until(() => ears.every(({ texts }) => texts.length > 0), "Every channel is heard");
    equal(
      ears.map(({ texts }) => texts.join()),
      names,
      "What was heard on each channel",
    );
  },

  "texts arrive as they were": async (scene) => {
    const [sender, other] = [await scene.open(), await scene.open()];
    // The longest that any signal has: a prefix of 48 characters, a dot and a word.
    const channel = `${scene.prefix}.${"x".repeat(54 - scene.prefix.length - 1)}`;
    const ear = await scene.listen(other, channel);
    const texts = ["", " ", "'", '"', "\\", "a\nb\r\n", "über 漢字 🚗", "\u0001", "x".repeat(LONGEST_TEXT)];
    await sender.publish(texts.map((text) => ({ channel, text })));
    await scene.until(() => ear.texts.length >= texts.length, "Every text is heard");
    equal(ear.texts, texts, "What was heard");
  },

  "whoever stops hears no more, and others do": async (scene) => {
    const [sender, other] = [await scene.open(), await scene.open()];
    const channel = scene.channel("work");
    const [first, second] = [await scene.listen(other, channel), await scene.listen(other, channel)];
    await first.stop();
    await sender.publish([{ channel, text: "one" }]);
    await scene.until(() => second.texts.length === 1, "The one who still listens hears");
    await second.stop();
    const third = await scene.listen(other, channel);
    await sender.publish([{ channel, text: "two" }]);
    await scene.until(() => third.texts.length === 1, "One who comes later hears");
    equal([first.texts, second.texts, third.texts], [[], ["one"], ["two"]], "What each has heard");
  },

  "what is published when nobody listens is nobody's": async (scene) => {
    const [sender, other] = [await scene.open(), await scene.open()];
    const channel = scene.channel("work");
    const witness = await scene.listen(sender, scene.channel("witness"));
    // A carrier may take its time. What comes out on one channel has gone by on the other.
    await sender.publish([
      { channel, text: "too early" },
      { channel: scene.channel("witness"), text: "gone by" },
    ]);
    await scene.until(() => witness.texts.length === 1, "The witness hears");
    const ear = await scene.listen(other, channel);
    await sender.publish([{ channel, text: "in time" }]);
    await scene.until(() => ear.texts.includes("in time"), "A text is heard");
    equal(ear.texts, ["in time"], "What was heard");
  },

  "closing ends listening, and may be done twice": async (scene) => {
    const [sender, other, third] = [await scene.open(), await scene.open(), await scene.open()];
    const channel = scene.channel("work");
    const gone = await scene.listen(other, channel);
    const ear = await scene.listen(third, channel);
    await other.close();
    await other.close();
    await gone.stop();
    await sender.publish([{ channel, text: "one" }]);
    await scene.until(() => ear.texts.length === 1, "Others hear");
    equal(gone.texts, [], "What a closed connection has heard");
    const refused = await other.publish([{ channel, text: "two" }]).then(
      () => false,
      () => true,
    );
    ok(refused, "A closed connection does not pretend to have sent something");
  },
});
