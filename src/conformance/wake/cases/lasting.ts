import { equal } from "../../expect.ts";
import { type WakeCase, wakeCasesOf } from "../case.ts";

/** What remains when connections break. */
export const lasting: readonly WakeCase[] = [
  ...wakeCasesOf(
    "lasting",
    {
      "listening goes on after a broken connection, and says that something may have been missed": async (scene) => {
        const [sender, other] = [await scene.open(), await scene.open()];
        const channel = scene.channel("work");
        const ear = await scene.listen(other, channel);
        const second = await scene.listen(other, scene.channel("ended"));
        await scene.interrupt();
        await scene.until(() => ear.missed > 0 && second.missed > 0, "Who may have missed something is told");
        // The sender's own connection may take a moment longer.
        await scene.until(async () => {
          await sender.publish([{ channel, text: "after" }]).catch(() => undefined);
          return ear.texts.includes("after");
        }, "Texts are heard again");
        equal(new Set(ear.texts), new Set(["after"]), "What was heard");
        await ear.stop();
      },

      "whoever waits is woken again after a broken connection": async (scene) => {
        const [sender, listener] = [await scene.openWake(), await scene.openWake()];
        let woken = 0;
        const wake = (): void => void (woken += 1);
        const asleep = { idle: () => 1, wake, stir: wake };
        listener.onWork("cars", asleep);
        await scene.until(() => woken > 0, "Listening begins");
        woken = 0;
        await scene.interrupt();
        await scene.until(() => woken > 0, "Whoever may have missed a wake looks");
        woken = 0;
        await scene.until(() => {
          sender.work("cars", 1);
          return woken > 0;
        }, "Work wakes again");
      },

      "closing does not wait for a connection that is broken": async (scene) => {
        const one = await scene.open();
        const ear = await scene.listen(one, scene.channel("work"));
        await scene.interrupt();
        await one.close();
        await ear.stop();
      },
    },
    ["interrupt"],
  ),

  ...wakeCasesOf(
    "lasting",
    {
      "budgets work again after a broken connection": async (scene) => {
        const hints = await scene.openHints();
        await hints.add(scene.channel("cars"), 1);
        await scene.interrupt();
        const name = scene.channel("vans");
        await scene.until(
          () =>
            hints.add(name, 1).then(
              () => true,
              () => false,
            ),
          "A budget can be added to again",
        );
        await scene.until(async () => (await hints.take(name).catch(() => "conflict")) === "taken", "And taken from");
      },
    },
    ["hints", "interrupt"],
  ),
];
