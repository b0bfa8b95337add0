/** Baton queues through the relay, and what happens to messages when the store that keeps the keys is away. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { systemClock } from "../../../src/domain/clock.ts";
import type * as port from "../../../src/engine/port.ts";
import { MemoryStore } from "../../../src/engines/memory/index.ts";
import { BatonError, connect } from "../../../src/index.ts";
import { batonSource, DEFAULT_KEYS, type RelayMessage } from "../../../src/relay/index.ts";
import { PassThrough } from "../../pass-through.ts";
import { Receiver } from "./receiver.ts";
import { ScriptedSource } from "./scripted-source.ts";
import { until } from "../../kit/until.ts";
import { fromSource, play, route, settingsOf, toFunction, toUrl } from "./stage.ts";

/** A store that can be away for holds. */
class AwayEngine extends PassThrough {
  away = false;
  holds = 0;

  override renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    return this.away
      ? Promise.reject(new BatonError("STORE_UNAVAILABLE", "The store is away."))
      : super.renew(renewals);
  }

  override hold(request: port.HoldRequest): Promise<port.Lease | undefined> {
    this.holds += 1;
    return this.away ? Promise.reject(new BatonError("STORE_UNAVAILABLE", "The store is away.")) : super.hold(request);
  }
}

describe("a Baton queue through the relay", () => {
  test("keeps its levels, counts attempts, and has its own dead letters", async (context) => {
    const baton = await connect("memory:");
    context.after(() => baton.close({ grace: 0 }));
    const queue = baton.queue<string>("cars");
    const seen: string[] = [];
    await queue.submit("car1", "low", { level: "low" });
    await queue.submit("car2", "high", { level: "high" });
    await queue.submit("car3", "hopeless", { id: "bad", headers: { color: "red" } });
    const settings = {
      ...fromSource(new ScriptedSource("cars"), { retry: { attempts: 2, backoffMs: 0, maxBackoffMs: 0 } }),
      open: () => batonSource({ name: "cars", store: baton, queue: "cars" }),
    };
    const run = ({ data, attempt, fence, attributes }: RelayMessage): void => {
      const text = String(JSON.parse(Buffer.from(data).toString()));
      seen.push(`${text} ${attempt} ${attributes["color"] ?? ""}`.trim());
      assert.ok(fence !== undefined && fence > 0);
      if (text === "hopeless") throw new Error("no luck");
    };
    await play(context, settingsOf(route([settings], toFunction(run), { concurrency: 1 })));
    await until(() => seen.length === 4, "all attempts");
    assert.equal(seen[0], "high 1");
    assert.deepEqual(seen.toSorted(), ["high 1", "hopeless 1 red", "hopeless 2 red", "low 1"]);
    const dead = await until(async () => (await queue.dead())[0], "the dead letter");
    assert.deepEqual([dead.id, dead.failure.message], ["bad", "Given up after attempt 2: no luck"]);
  });

  test("counts no attempt while the key is busy, whichever relay asks and however often", async (context) => {
    const baton = await connect("memory:");
    context.after(() => baton.close({ grace: 0 }));
    const keys = { ...DEFAULT_KEYS, store: baton, queue: "keys", waiting: 0, awayMs: 10 };
    const source = {
      ...fromSource(new ScriptedSource("cars")),
      open: () => batonSource({ name: "cars", store: baton, queue: "cars" }),
    };
    const attempts: number[] = [];
    const run = ({ attempt }: RelayMessage): void => void attempts.push(attempt);
    const busy = await baton.queue("keys").hold("car1");
    await baton.queue("cars").submit("car1", "x");
    for (const name of ["first", "second"]) {
      const { relay, events } = await play(context, settingsOf(route([source], toFunction(run)), { keys }));
      await until(() => events.filter(({ type }) => type === "back").length >= 5, `the ${name} relay to ask`);
      await relay.stop();
    }
    await busy.release();
    await play(context, settingsOf(route([source], toFunction(run)), { keys }));
    await until(() => attempts.length === 1, "the delivery");
    assert.deepEqual(attempts, [1]);
    assert.deepEqual(await baton.queue("cars").dead(), []);
  });

  test("whose item is cancelled in work has its delivery broken off, and ends as cancelled", async (context) => {
    const baton = await connect("memory:");
    context.after(() => baton.close({ grace: 0 }));
    const receiver = await Receiver.start(context);
    const closed = Promise.withResolvers<void>();
    receiver.answer = (_, __, socket) => socket.once("close", () => closed.resolve());
    const receipt = await baton.queue("cars").submit("car1", "x", { id: "a" });
    const settings = {
      ...fromSource(new ScriptedSource("cars")),
      open: () => batonSource({ name: "cars", store: baton, queue: "cars", leaseMs: 300 }),
    };
    const { events } = await play(context, settingsOf(route([settings], toUrl(receiver.url))));
    await until(() => receiver.received.length === 1, "the delivery");
    await baton.queue("cars").cancel("a");
    await closed.promise;
    assert.equal((await receipt.outcome({ timeout: "45s" })).state, "cancelled");
    await until(() => events.some(({ type }) => type === "lost"), "the relay to let go of it");
  });
});

test("while the keys' store is away, messages stay where they are", async (context) => {
  const engine = new AwayEngine(new MemoryStore({ clock: systemClock }).connect());
  const baton = await connect(engine);
  context.after(() => baton.close({ grace: 0 }));
  const keys = { ...DEFAULT_KEYS, store: baton, queue: "keys", awayMs: 0 };
  const source = new ScriptedSource("cars");
  const { events } = await play(
    context,
    settingsOf(
      route(
        [source],
        toFunction(() => undefined),
        { concurrency: 1 },
      ),
      { keys },
    ),
  );
  engine.away = true;
  const from = performance.now();
  for (let index = 0; index < 20; index += 1) source.put(`m${index}`, { key: `k${index}` });
  await until(() => events.some((event) => event.type === "trouble"), "the trouble to be told");
  await wait(500);
  // One look after 100 ms, 200 ms, 400 ms and so on: not one per message and moment.
  const forMs = performance.now() - from;
  const mostLooks = 3 + Math.floor(Math.log2(forMs / 100 + 1));
  assert.ok(engine.holds <= mostLooks, `The store was asked ${engine.holds} times in ${forMs} ms.`);
  engine.away = false;
  await until(() => source.told.filter((told) => told.startsWith("acknowledged")).length === 20, "all of them");
  assert.ok(source.told.filter((told) => told.startsWith("back")).every((told) => told.endsWith("uncounted")));
});

test("a message whose key is lost in work is broken off and goes back, uncounted", async (context) => {
  const engine = new AwayEngine(new MemoryStore({ clock: systemClock }).connect());
  const baton = await connect(engine, { onEvent: () => undefined });
  context.after(() => baton.close({ grace: 0 }));
  const keys = { ...DEFAULT_KEYS, leaseMs: 400, awayMs: 0, store: baton, queue: "keys" };
  const source = new ScriptedSource("cars");
  const signals: AbortSignal[] = [];
  const run = async ({ signal }: RelayMessage): Promise<void> => {
    signals.push(signal);
    if (signals.length === 1) await wait(60_000, undefined, { signal });
  };
  await play(context, settingsOf(route([source], toFunction(run)), { keys }));
  source.put("a", { key: "car1" });
  await until(() => signals.length === 1, "the work");
  engine.away = true;
  await until(() => source.told.includes("back a uncounted"), "the message to go back");
  assert.ok(signals[0]?.aborted);
  engine.away = false;
  await until(() => source.told.includes("acknowledged a"), "its end");
});
