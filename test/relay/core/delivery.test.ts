import assert from "node:assert/strict";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { BatonError, connect, Fatal, RetryLater } from "../../../src/index.ts";
import type { RelayMessage } from "../../../src/relay/index.ts";
import { ScriptedSource } from "./scripted-source.ts";
import { until } from "../../kit/until.ts";
import { fromSource, play, route, settingsOf, toFunction } from "./stage.ts";
import { playInTime } from "../../kit/lateness.ts";

/** Holds of a few seconds are kept, and end, as they should where timers are no later than this. */
const MOST_LATE_MS = 100;

const AT_ONCE = { attempts: 3, backoffMs: 0, maxBackoffMs: 0 };

describe("a message", () => {
  test("that was handled is acknowledged, and carries what is known of it", async (context) => {
    const source = new ScriptedSource("cars");
    const seen: RelayMessage[] = [];
    await play(
      context,
      settingsOf(
        route(
          [source],
          toFunction((message) => void seen.push(message)),
        ),
      ),
    );
    source.put("a", { key: "car1", fence: 7, attributes: { color: "red" } });
    await until(() => source.told.includes("acknowledged a"), "its end");
    const [message] = seen;
    assert.ok(message);
    const { id, source: name, key, attempt, fence, attributes, contentType } = message;
    assert.deepEqual(
      { id, name, key, attempt, fence, attributes, contentType },
      {
        id: "a",
        name: "cars",
        key: "car1",
        attempt: 1,
        fence: 7,
        attributes: { color: "red" },
        contentType: "application/json",
      },
    );
  });

  test("that fails is tried again, and given up after its last attempt", async (context) => {
    const source = new ScriptedSource("cars");
    const attempts: number[] = [];
    const fail = ({ attempt }: RelayMessage): never => {
      attempts.push(attempt);
      throw new Error("no luck");
    };
    const { events } = await play(
      context,
      settingsOf(route([fromSource(source, { retry: AT_ONCE })], toFunction(fail))),
    );
    source.put("a");
    await until(() => source.told.length === 3, "its end");
    assert.deepEqual(attempts, [1, 2, 3]);
    assert.deepEqual(source.told, ["back a", "back a", "buried a: Given up after attempt 3: no luck"]);
    assert.deepEqual(
      events.map(({ type }) => type),
      ["started", "retry", "retry", "dead"],
    );
  });

  test("of a source that does not count is counted here", async (context) => {
    const source = new ScriptedSource("cars");
    const attempts: number[] = [];
    await play(
      context,
      settingsOf(
        route(
          [fromSource(source, { retry: AT_ONCE })],
          toFunction(({ attempt }) => {
            attempts.push(attempt);
            throw new Error("no luck");
          }),
        ),
      ),
    );
    source.put("a", { attempt: undefined });
    await until(() => source.told.length === 3, "its end");
    assert.deepEqual(attempts, [1, 2, 3]);
  });

  test("that is hopeless is buried at once; one that asks for time gets it", async (context) => {
    const source = new ScriptedSource("cars");
    const { events } = await play(
      context,
      settingsOf(
        route(
          [source],
          toFunction(({ id }) => {
            throw id === "bad" ? new Fatal("bad data") : new RetryLater("7s", "busy");
          }),
        ),
      ),
    );
    source.put("bad");
    source.put("later");
    await until(() => source.told.length === 2, "both");
    assert.deepEqual(source.told.toSorted(), ["back later later", "buried bad: bad data"]);
    assert.ok(events.some((event) => event.type === "retry" && event.delayMs === 7_000));
  });

  test("whose transform throws is bad data; one whose process crashed too often is given up untried", async (context) => {
    const source = new ScriptedSource("cars");
    source.counts = "deliveries";
    let runs = 0;
    const transforms = [
      {
        name: "picky",
        apply: (content: {
          data: Uint8Array;
          contentType: string | undefined;
          attributes: Readonly<Record<string, string>>;
        }) => {
          if (content.attributes["bad"] !== undefined) throw new Error("not what I expect");
          return { ...content, data: Buffer.from("changed") };
        },
      },
    ];
    await play(
      context,
      settingsOf(
        route(
          [source],
          toFunction(({ data }) => void (runs += String(data) === "changed" ? 1 : 100)),
          { transforms },
        ),
      ),
    );
    source.put("bad", { attributes: { bad: "yes" } });
    source.put("crashed", { attempt: 3 });
    source.put("good");
    await until(() => source.told.length === 3, "all");
    assert.equal(runs, 1);
    assert.ok(source.told.includes("buried bad: not what I expect"));
    assert.ok(source.told.some((told) => /^buried crashed: Given up: all 3 attempts .* attempt 4/.test(told)));
  });

  test("that was received often is tried before it is given up, where receipts are counted", async (context) => {
    const source = new ScriptedSource("cars");
    const run = ({ id }: RelayMessage): void => {
      if (id === "bad") throw new Error("no luck");
    };
    await play(context, settingsOf(route([source], toFunction(run))));
    source.put("good", { attempt: 9 });
    source.put("bad", { attempt: 9 });
    await until(() => source.told.length === 2, "both");
    assert.deepEqual(source.told.toSorted(), ["acknowledged good", "buried bad: Given up after attempt 10: no luck"]);
  });

  test("that was refused for good is not delivered again, though its source has no dead letters", async (context) => {
    const source = Object.assign(new ScriptedSource("cars"), { hasDeadLetters: false });
    let runs = 0;
    const run = (): never => {
      runs += 1;
      throw new Fatal("never");
    };
    const settings = fromSource(source, { retry: AT_ONCE });
    const { events } = await play(context, settingsOf(route([settings], toFunction(run))));
    const bad = source.put("bad", { bury: undefined });
    for (const count of [1, 2, 3]) {
      await until(() => events.filter(({ type }) => type === "dead").length === count, `it to be given up: ${count}`);
      if (count < 3) source.putBack(bad);
    }
    assert.equal(runs, 1);
    assert.deepEqual(source.told, ["back bad later", "back bad later", "back bad later"], "it is kept");
    assert.match(
      events.flatMap((event) => (event.type === "warning" ? [event.message] : [])).join(),
      /cars has no dead letters of its own.*dead_letter/,
    );
  });

  test("is told of as tried again only when its source has heard so", async (context) => {
    const source = new ScriptedSource("cars");
    const run = (): never => {
      throw new Error("no luck");
    };
    const { events } = await play(context, settingsOf(route([source], toFunction(run))));
    source.put("a").refusal = new BatonError("LEASE_LOST", "It is somebody else's.");
    await until(() => events.some(({ type }) => type === "source-trouble"), "the trouble");
    source.put("b", { attempt: 9 });
    await until(() => events.some(({ type }) => type === "dead"), "the end of the next");
    assert.deepEqual(
      events.filter(({ type }) => type === "retry"),
      [],
    );
  });

  test("that takes longer than it may is broken off and tried again", async (context) => {
    const source = new ScriptedSource("cars");
    const { events } = await play(
      context,
      settingsOf(
        route(
          [source],
          toFunction(({ signal }) => wait(60_000, undefined, { signal }), 50),
        ),
      ),
    );
    source.put("slow");
    await until(() => source.told.length > 0, "its end");
    const [, retry] = events;
    assert.ok(retry?.type === "retry");
    assert.match(retry.reason, /longer than 50ms/);
  });

  test("whose transform never ends is broken off like any other", async (context) => {
    const source = new ScriptedSource("cars");
    const transforms = [{ name: "endless", apply: () => new Promise<never>(() => undefined) }];
    const { events } = await play(
      context,
      settingsOf(
        route(
          [source],
          toFunction(() => undefined, 50),
          { transforms },
        ),
      ),
    );
    source.put("a");
    await until(() => source.told.length > 0, "its end");
    assert.ok(events.some((event) => event.type === "retry" && event.reason.includes("longer than 50ms")));
  });

  test("is extended for as long as its work takes, and no longer", async (context) => {
    await playInTime(MOST_LATE_MS, async () => {
      const source = new ScriptedSource("cars");
      const done = Promise.withResolvers<void>();
      const { events } = await play(
        context,
        settingsOf(
          route(
            [source],
            toFunction(() => done.promise),
          ),
        ),
      );
      const message = source.put("long", { holdMs: 900 });
      const isLost = (): boolean => events.some(({ type }) => type === "lost");
      await until(() => message.extensions >= 9 || isLost(), "three holds' worth of extensions");
      assert.equal(isLost(), false, "the message is still held");
      done.resolve();
      await until(() => source.told.includes("acknowledged long"), "its end");
      const { extensions } = message;
      await wait(900);
      assert.equal(message.extensions, extensions);
    });
  });

  test("that is lost is broken off, and its source is told nothing", async (context) => {
    await playInTime(MOST_LATE_MS, async () => {
      const source = new ScriptedSource("cars");
      const signals: AbortSignal[] = [];
      const run = ({ signal }: RelayMessage): Promise<void> => {
        signals.push(signal);
        return wait(60_000, undefined, { signal });
      };
      const { events } = await play(context, settingsOf(route([source], toFunction(run))));
      const told = source.put("taken", {});
      const kept = source.put("unkept", { holdMs: 400 });
      await until(() => signals.length === 2 || events.some(({ type }) => type === "lost"), "both to be in work");
      assert.equal(signals.length, 2);
      told.losing.abort(new Error("somebody else has it"));
      kept.refusal = new Error("the source is away");
      await until(() => events.filter(({ type }) => type === "lost").length === 2, "both to be lost");
      assert.ok(signals.every(({ aborted }) => aborted));
      assert.deepEqual(source.told, []);
    });
  });

  test("that is lost before it comes to work is not worked on", async (context) => {
    const source = new ScriptedSource("cars");
    const transforming = Promise.withResolvers<void>();
    let runs = 0;
    const transforms = [
      {
        name: "slow",
        apply: async <T>(content: T): Promise<T> => {
          await transforming.promise;
          return content;
        },
      },
    ];
    const { events } = await play(
      context,
      settingsOf(
        route(
          [source],
          toFunction(() => void (runs += 1)),
          { transforms },
        ),
      ),
    );
    const message = source.put("a");
    await until(() => source.inHand === 1, "its receipt");
    message.losing.abort(new Error("somebody else has it"));
    transforming.resolve();
    await until(() => events.some(({ type }) => type === "lost"), "its end");
    assert.equal(runs, 0);
    assert.deepEqual(source.told, []);
  });

  test("whose source is away is told again and again; its slot is for others meanwhile", async (context) => {
    const source = new ScriptedSource("cars");
    const begun: string[] = [];
    await play(
      context,
      settingsOf(
        route(
          [source],
          toFunction(({ id }) => void begun.push(id)),
          { concurrency: 1 },
        ),
      ),
    );
    const message = source.put("first", { holdMs: 60_000 });
    message.refusal = new Error("the source is away");
    await until(() => begun.length === 1, "the first");
    source.put("second");
    await until(() => begun.length === 2, "the second, while the first is not told yet");
    message.refusal = undefined;
    await until(() => source.told.includes("acknowledged first"), "the first to be told");
  });
});

describe("dead letters", () => {
  test("go to a Baton queue, a file, nowhere, or stay", async (context) => {
    const folder = await mkdtemp(join(tmpdir(), "baton-relay-"));
    context.after(() => rm(folder, { recursive: true, force: true }));
    const store = `sqlite:${join(folder, "dead.db")}`;
    const path = join(folder, "dead.jsonl");
    const sources = ["queue", "file", "drop", "stay"].map((name) => new ScriptedSource(name));
    const [toQueue, toFile, drop, stay] = sources;
    assert.ok(toQueue && toFile && drop && stay);
    const played = await play(
      context,
      settingsOf(
        route(
          [
            fromSource(toQueue, { deadLetter: { to: "queue", store, queue: "dead" } }),
            fromSource(toFile, { deadLetter: { to: "file", path } }),
            fromSource(drop, { deadLetter: { to: "drop" } }),
            fromSource(stay),
          ],
          toFunction(() => {
            throw new Fatal("hopeless");
          }),
        ),
      ),
    );
    for (const source of sources) source.put("x", { key: "car1", attributes: { color: "red" }, bury: undefined });
    await until(() => played.events.filter(({ type }) => type === "dead").length === 4, "four dead letters");
    for (const source of [toQueue, toFile, drop]) assert.deepEqual(source.told, ["acknowledged x"]);
    assert.deepEqual(stay.told, ["back x later"]);
    await played.relay.stop();

    const line = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
    assert.equal(line["reason"], "hopeless");
    assert.equal(Buffer.from(String(line["data"]), "base64").toString(), '{"id":"x"}');
    await using baton = await connect(store);
    const [taken] = await baton.queue("dead").take({ wait: "0s" });
    assert.ok(taken);
    assert.deepEqual(taken.item.payload, { id: "x" });
    assert.equal(taken.item.key, "car1");
    assert.equal(taken.item.headers?.["baton-reason"], "hopeless");
    assert.equal(taken.item.headers?.["color"], "red");
    await taken.done();
  });

  test("that somebody puts back in their queue have all their attempts again", async (context) => {
    const source = new ScriptedSource("cars");
    const attempts: number[] = [];
    const run = ({ attempt }: RelayMessage): never => {
      attempts.push(attempt);
      throw new Error("no luck");
    };
    await play(context, settingsOf(route([fromSource(source, { retry: AT_ONCE })], toFunction(run))));
    for (const times of [1, 2]) {
      source.put("a", { attempt: undefined });
      const buried = (): number => source.told.filter((told) => told.startsWith("buried")).length;
      await until(() => buried() === times, `it to be given up: ${times}`);
    }
    assert.deepEqual(attempts, [1, 2, 3, 1, 2, 3]);
  });

  test("that cannot be kept stay in their source", async (context) => {
    const source = new ScriptedSource("cars");
    const store = "memory:";
    const queue = "dead";
    const { events } = await play(
      context,
      settingsOf(
        route(
          [fromSource(source, { deadLetter: { to: "queue", store, queue } })],
          toFunction(() => {
            throw new Fatal("hopeless");
          }),
        ),
      ),
    );
    // A key that no store takes.
    source.put("x", { key: "k".repeat(600) });
    await until(() => source.told.length > 0, "its end");
    assert.deepEqual(source.told, ["back x later"]);
    assert.ok(events.some((event) => event.type === "trouble" && event.doing.includes("dead letter")));
  });
});

describe("a relay that is stopped", () => {
  test("lets deliveries finish, and takes nothing new", async (context) => {
    const source = new ScriptedSource("cars");
    const done = Promise.withResolvers<void>();
    const { relay } = await play(
      context,
      settingsOf(
        route(
          [source],
          toFunction(() => done.promise),
          { concurrency: 1 },
        ),
      ),
    );
    source.put("a");
    await until(() => source.inHand === 1, "its begin");
    const stopping = relay.stop({ graceMs: 10_000 });
    source.put("b");
    await wait(50);
    done.resolve();
    assert.deepEqual(await stopping, { finished: 1, givenBack: 0, abandoned: 0 });
    assert.deepEqual(source.told, ["acknowledged a", "closed"]);
  });

  test("breaks off what does not finish, and gives it back as if it had not been received", async (context) => {
    const source = new ScriptedSource("cars");
    const { relay, events } = await play(
      context,
      settingsOf(
        route(
          [source],
          toFunction(({ signal }) => wait(60_000, undefined, { signal })),
        ),
      ),
    );
    source.put("a");
    await until(() => source.inHand === 1, "its begin");
    assert.deepEqual(await relay.stop({ graceMs: 20 }), { finished: 0, givenBack: 1, abandoned: 0 });
    assert.deepEqual(source.told, ["back a uncounted", "closed"]);
    assert.equal(events.at(-1)?.type, "stopped");
  });

  test("goes on with other settings when it is told to, and keeps its own when those are bad", async (context) => {
    const [one, two] = [new ScriptedSource("one"), new ScriptedSource("two")];
    const done = Promise.withResolvers<void>();
    const seen: string[] = [];
    const { relay } = await play(
      context,
      settingsOf(
        route(
          [one],
          toFunction(() => done.promise),
        ),
      ),
    );
    one.put("a");
    await until(() => one.inHand === 1, "the first to be in work");
    const bad = fromSource(two, { open: () => Promise.reject(new Error("no such queue")) });
    await assert.rejects(
      relay.reload(
        settingsOf(
          route(
            [bad],
            toFunction(() => undefined),
          ),
        ),
      ),
      /no such queue/,
    );
    assert.equal(relay.report().routes[0]?.inWork, 1);
    await relay.reload(
      settingsOf(
        route(
          [two],
          toFunction(({ id }) => void seen.push(id)),
        ),
      ),
    );
    two.put("b");
    await until(() => seen.length === 1, "the new source");
    done.resolve();
    await until(() => one.told.includes("closed"), "the old one to come to its end");
    assert.deepEqual(one.told, ["acknowledged a", "closed"]);
  });
});
