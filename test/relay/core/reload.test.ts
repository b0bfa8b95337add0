/** Other settings while the relay runs: what was begun goes on, and a stop in the middle is a stop. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Receiver } from "./receiver.ts";
import { ScriptedSource } from "./scripted-source.ts";
import { until } from "../../kit/until.ts";
import { fromSource, play, route, settingsOf, toFunction, toUrl } from "./stage.ts";

const nothing = toFunction(() => undefined);

describe("a reload", () => {
  test("that is under way when the relay is stopped does not start it again", async (context) => {
    const [old, next] = [new ScriptedSource("old"), new ScriptedSource("next")];
    const { relay, events } = await play(context, settingsOf(route([old], nothing)));
    const opening = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const open = async (): Promise<ScriptedSource> => {
      asked.resolve();
      await opening.promise;
      return next;
    };
    const reloaded = relay.reload(settingsOf(route([fromSource(next, { open })], nothing)));
    await asked.promise;
    const stopped = relay.stop();
    opening.resolve();
    await Promise.all([reloaded, stopped]);
    next.put("late");
    assert.deepEqual([relay.report().state, next.told, next.watches], ["stopped", ["closed"], 0]);
    assert.deepEqual(
      events.map(({ type }) => type),
      ["started", "stopped"],
    );
  });

  test("that never comes to its end does not keep the relay from stopping", async (context) => {
    const { relay } = await play(context, settingsOf(route([new ScriptedSource("old")], nothing)));
    const hanging = fromSource(new ScriptedSource("next"), { open: () => new Promise(() => undefined) });
    void relay.reload(settingsOf(route([hanging], nothing)));
    await relay.stop({ graceMs: 100 });
    assert.equal(relay.report().state, "stopped");
  });

  test("lets what was begun come to its end, however short the grace, and stop bounds it", async (context) => {
    const source = new ScriptedSource("cars");
    const ends = new Map<string, () => void>();
    const broken: string[] = [];
    const processor = toFunction(async ({ id, signal }) => {
      signal.addEventListener("abort", () => broken.push(id));
      await new Promise<void>((resolve) => {
        ends.set(id, resolve);
        signal.addEventListener("abort", () => resolve());
      });
      signal.throwIfAborted();
    });
    const settings = settingsOf(route([source], processor), { graceMs: 50 });
    const { relay } = await play(context, settings);
    source.put("long");
    source.put("longer");
    await until(() => ends.size === 2, "both to be in work");
    await relay.reload(settings);
    source.put("new");
    await until(() => ends.has("new"), "work under the new settings");
    await new Promise((resolve) => setTimeout(resolve, 200));
    assert.deepEqual(broken, []);
    ends.get("long")?.();
    await until(() => source.told.length === 1, "the end of the long one");
    assert.deepEqual(source.told, ["acknowledged long"]);
    const { givenBack } = await relay.stop();
    assert.deepEqual([givenBack, new Set(broken)], [2, new Set(["longer", "new"])]);
  });

  test("forgets the circuits of the settings that it replaces", async (context) => {
    const receiver = await Receiver.start(context);
    receiver.answer = (_, response) => response.writeHead(503).end();
    const source = new ScriptedSource("cars");
    const processor = toUrl(receiver.url, { breaker: { failures: 1, openMs: 3_600_000 } });
    const settings = settingsOf(route([source], processor), {
      admin: { host: "127.0.0.1", port: 0, token: undefined },
    });
    const { relay } = await play(context, settings);
    const gauge = async (): Promise<string | undefined> => {
      const text = await (await fetch(`${relay.adminUrl ?? ""}/metrics`)).text();
      return /^baton_relay_circuit_open\{.*$/m.exec(text)?.[0];
    };
    assert.equal(await gauge(), undefined);
    source.put("a");
    await until(() => source.told.length > 0, "the circuit to open");
    assert.equal(await gauge(), `baton_relay_circuit_open{target="${receiver.url}"} 1`);
    receiver.answer = (_, response) => response.writeHead(204).end();
    await relay.reload(settings);
    source.put("b");
    await until(() => source.told.includes("acknowledged b"), "a delivery by the new settings");
    assert.equal(await gauge(), undefined);
  });
});
