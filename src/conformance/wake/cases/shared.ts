import type { WakeAdapter } from "../../../wake/port.ts";
import type { Sleepers } from "../../../wake/slots.ts";
import { atMost, equal, ok } from "../../expect.ts";
import { type WakeCase, wakeCasesOf } from "../case.ts";
import type { WakeScene } from "../scene.ts";

const PROCESSES = 4;
const CLAIMS = 50;
const WORK = 10;
const CALM_MS = 100;

/** Claims of one process that sleep; who is woken is up. */
class Bed implements Sleepers {
  asleep = 0;
  woken = 0;

  idle(): number {
    return this.asleep;
  }

  wake(count: number): void {
    this.asleep -= count;
    this.woken += count;
  }

  stir(): void {
    this.wake(this.asleep);
  }
}

/** The three signals, as engines use them. */
export const shared: readonly WakeCase[] = [
  ...wakeCasesOf(
    "shared",
    {
      "with hints no more wake than there is work": async (scene) => {
        const { beds, tell } = await herd(scene);
        tell();
        await scene.until(() => total(beds) > 0, "Somebody wakes");
        // A budget that all take from at the same moment may be too contended to be added to, and then everybody may wake.
        await calm(scene, beds);
        tell();
        await scene.until(() => total(beds) > WORK, "Somebody wakes again");
        atMost(total(beds), 2 * WORK, `Of ${PROCESSES * CLAIMS} who sleep, those who wake for ${2 * WORK}`);
      },
    },
    ["hints"],
  ),

  ...wakeCasesOf("shared", {
    "without hints every process wakes, none of it more than there is work": async (scene) => {
      const { beds, tell } = await herd(scene, withoutHints);
      tell();
      await scene.until(() => beds.every(({ woken }) => woken >= WORK), "Every process wakes");
      equal(
        beds.map(({ woken }) => woken),
        beds.map(() => WORK),
        "Those who wake in each process",
      );
    },

    "outcomes, losses and what concerns everybody reach those who listen": async (scene) => {
      const [sender, listener] = [await scene.openWake(), await scene.openWake()];
      const told: unknown[] = [];
      let stirred = 0;
      listener.onEnded("cars", (ids) => told.push(...(ids ?? ["look"])));
      listener.onLost(({ queue, key, fence }) => told.push(`${queue}/${key}/${fence}`));
      listener.onWork("cars", { idle: () => 0, wake: () => undefined, stir: () => void (stirred += 1) });
      await scene.until(() => told.includes("look") && stirred > 0, "Whoever begins to listen looks once");
      const before = stirred;
      await scene.until(() => {
        sender.lost({ queue: "cars", key: "a key", fence: 7 });
        return told.includes("cars/a key/7");
      }, "A loss is heard");
      sender.ended("cars", ["one", "two"]);
      sender.ended("vans", ["three"]);
      sender.stir("cars");
      await scene.until(() => told.includes("two") && stirred > before, "Outcomes are heard");
      ok(told.includes("one") && !told.includes("three"), "Outcomes are heard by those who wait for the queue");
    },
  }),
];

async function herd(
  scene: WakeScene,
  change?: (adapter: WakeAdapter) => WakeAdapter,
): Promise<{ readonly beds: readonly Bed[]; readonly tell: () => void }> {
  const sender = await scene.openWake(change);
  const beds: Bed[] = [];
  for (let number = 0; number < PROCESSES; number += 1) {
    const wake = await scene.openWake(change);
    const bed = new Bed();
    let isListening = false;
    wake.onWork("cars", {
      idle: () => bed.idle(),
      wake: (count) => bed.wake(count),
      stir: () => (isListening = true),
    });
    // As everybody who begins to listen, it is called once when messages surely arrive.
    await scene.until(() => isListening, "Listening begins");
    bed.asleep = CLAIMS;
    beds.push(bed);
  }
  return { beds, tell: () => sender.work("cars", WORK) };
}

function withoutHints(adapter: WakeAdapter): WakeAdapter {
  return {
    name: adapter.name,
    hints: undefined,
    publish: (messages) => adapter.publish(messages),
    listen: (channel, heard, missed) => adapter.listen(channel, heard, missed),
    close: () => adapter.close(),
  };
}

/** Nobody has woken for a while. */
async function calm(scene: WakeScene, beds: readonly Bed[]): Promise<void> {
  for (let seen = -1; seen !== total(beds);) {
    seen = total(beds);
    await scene.pass(CALM_MS);
  }
}

function total(beds: readonly Bed[]): number {
  return beds.reduce((sum, { woken }) => sum + woken, 0);
}
