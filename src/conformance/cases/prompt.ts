import { setImmediate as nextTurn } from "node:timers/promises";
import type { Engine } from "../../engine/port.ts";
import { type ConformanceCase, timedCasesOf } from "../case.ts";
import { ok, present } from "../expect.ts";
import type { Scene } from "../scene.ts";

/**
 * A wake-up takes a millisecond or a few. The bound leaves room for a busy machine, but none for a poll tick
 * of a second; and it must hold for most of several tries, because any one may meet a pause of the process.
 */
const PROMPT_MS = 250;
/** What is due at a time may come by a store's own clock, and that may tick four times a second, as that of JetStream's schedules does. */
const DUE_MS = PROMPT_MS + 250;
const TRIES = 5;
const DELAY_MS = 80;

export const prompt: readonly ConformanceCase[] = timedCasesOf("G7", {
  "a waiting claim is woken by a submission": async (scene) => {
    await expectPrompt(scene, async () => {
      const waiting = await waitingClaim(scene);
      return await measured(scene, () => scene.submit("k"), waiting);
    });
  },

  "a waiting claim is woken by a submission through another handle": async (scene) => {
    const other = await scene.open();
    await expectPrompt(scene, async () => {
      const waiting = await waitingClaim(scene);
      return await measured(scene, () => scene.submit("k", {}, other), waiting);
    });
  },

  "the next item of a key starts when the one before is settled": async (scene) => {
    const other = await scene.open();
    await scene.engine.submit(Array.from({ length: 3 * TRIES }, () => scene.entry("k")));
    await expectPrompt(scene, async () => {
      const grant = await scene.claimOne();
      const waiting = await waitingClaim(scene, other);
      return await measured(scene, () => scene.done(grant), waiting);
    });
  },

  "an item starts when its delay is over": async (scene) => {
    await expectPrompt(
      scene,
      async () => {
        const waiting = await waitingClaim(scene);
        return await measured(scene, () => scene.submit("k", { delayMs: DELAY_MS }), waiting, DELAY_MS);
      },
      DUE_MS,
    );
  },

  "an item that another handle delayed starts when its delay is over": async (scene) => {
    const other = await scene.open();
    await expectPrompt(
      scene,
      async () => {
        const waiting = await waitingClaim(scene);
        return await measured(scene, () => scene.submit("k", { delayMs: DELAY_MS }, other), waiting, DELAY_MS);
      },
      DUE_MS,
    );
  },

  "an item starts again when its back-off is over": async (scene) => {
    await expectPrompt(
      scene,
      async () => {
        await scene.submit("k");
        const grant = await scene.claimOne();
        const waiting = await waitingClaim(scene);
        return await measured(scene, () => scene.retry(grant, DELAY_MS), waiting, DELAY_MS);
      },
      DUE_MS,
    );
  },

  "a key is handed out when its lease has run out": async (scene) => {
    await expectPrompt(scene, async () => {
      await scene.submit("k");
      return await measured(scene, () => scene.claimOne({ leaseMs: scene.leaseMs }), undefined, scene.leaseMs);
    });
  },

  "a key is handed out when its hold ends": async (scene) => {
    const other = await scene.open();
    await expectPrompt(scene, async () => {
      const lease = present(await scene.hold("k"), "An idle key can be held");
      await scene.submit("k");
      const waiting = await waitingClaim(scene, other);
      return await measured(scene, () => scene.finish({ lease }, { type: "release" }), waiting);
    });
  },

  "a hold that waits is woken when the item is done": async (scene) => {
    const other = await scene.open();
    await scene.engine.submit(Array.from({ length: 3 * TRIES }, () => scene.entry("k")));
    await expectPrompt(scene, async () => {
      const grant = await scene.claimOne();
      const holding = scene.heldLater("k", undefined, other);
      await settleIn(scene);
      await scene.done(grant);
      const began = scene.clock.monotonic();
      const lease = present(await holding, "A hold that waited is granted");
      const tookMs = scene.clock.monotonic() - began;
      await scene.finish({ lease }, { type: "release" }, other);
      return tookMs;
    });
  },

  "a waiting claim is woken when a queue goes on": async (scene) => {
    const other = await scene.open();
    await expectPrompt(scene, async () => {
      await scene.engine.pause({ queue: scene.queue, paused: true });
      await scene.submit("k");
      const waiting = await waitingClaim(scene);
      return await measured(scene, () => other.pause({ queue: scene.queue, paused: false }), waiting);
    });
  },

  "a waiting claim is woken when a key goes on": async (scene) => {
    const other = await scene.open();
    await expectPrompt(scene, async () => {
      await scene.engine.pause({ queue: scene.queue, key: "k", paused: true });
      await scene.submit("k");
      const waiting = await waitingClaim(scene);
      return await measured(scene, () => other.pause({ queue: scene.queue, key: "k", paused: false }), waiting);
    });
  },

  "a waiting claim is woken by a dead letter that is retried": async (scene) => {
    const other = await scene.open();
    await expectPrompt(scene, async () => {
      await scene.submit("k");
      await scene.finish(await scene.claimOne(), { type: "dead", failure: { message: "no" } });
      const waiting = await waitingClaim(scene);
      return await measured(scene, () => other.revive({ queue: scene.queue, action: "retry" }), waiting);
    });
  },

  "whoever waits for an outcome is woken": async (scene) => {
    const other = await scene.open();
    await expectPrompt(scene, async (attempt) => {
      const id = `item${attempt}`;
      await scene.submit("k", { id });
      const grant = await scene.claimOne();
      const waiting = scene.outcome(id, other);
      await settleIn(scene);
      const began = scene.clock.monotonic();
      await scene.done(grant);
      await waiting;
      return scene.clock.monotonic() - began;
    });
  },

  "a claim is given up at once": async (scene) => {
    await expectPrompt(scene, async () => {
      const impatience = new AbortController();
      const waiting = scene.claim({ signal: impatience.signal });
      await settleIn(scene);
      const began = scene.clock.monotonic();
      impatience.abort();
      await waiting;
      return scene.clock.monotonic() - began;
    });
  },
});

type Waiting = { readonly granted: ReturnType<Scene["claimOne"]> };

/** A claim that is known to have found nothing, wrapped so that awaiting this does not await the grant. */
async function waitingClaim(scene: Scene, engine: Engine = scene.engine): Promise<Waiting> {
  const granted = scene.claimOne({ engine });
  await settleIn(scene);
  return { granted };
}

/** Lets a call that was just made reach the store: a later call through the same handle is answered after it. */
async function settleIn(scene: Scene): Promise<void> {
  await scene.report();
  await nextTurn();
}

/** Milliseconds from the end of the act, or from when what it started is due, to the grant. */
async function measured(scene: Scene, act: () => Promise<unknown>, waiting?: Waiting, dueAfterMs = 0): Promise<number> {
  await act();
  const began = scene.clock.monotonic();
  const grant = await (waiting?.granted ?? scene.claimOne());
  const tookMs = scene.clock.monotonic() - began - dueAfterMs;
  await scene.done(grant);
  return tookMs;
}

async function expectPrompt(
  scene: Scene,
  attempt: (index: number) => Promise<number>,
  withinMs = PROMPT_MS,
): Promise<void> {
  const took: number[] = [];
  for (let index = 0; index < TRIES; index += 1) {
    took.push(await attempt(index));
    const inTime = took.filter((ms) => ms < withinMs).length;
    if (inTime > TRIES / 2) return;
    if (took.length - inTime > TRIES / 2) break;
  }
  const shown = took.map((ms) => ms.toFixed(0)).join(", ");
  ok(false, `Most of ${TRIES} tries must take less than ${withinMs} ms on queue ${scene.queue}; they took ${shown}`);
}
