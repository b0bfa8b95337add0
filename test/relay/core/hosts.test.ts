/** How many requests a host gets where messages name their hosts, and what is known of it the second time that it goes away. */
import assert from "node:assert/strict";
import { connect as connectTcp, createServer, type Socket } from "node:net";
import { describe, test } from "node:test";
import { until } from "../../kit/until.ts";
import { Receiver } from "./receiver.ts";
import { ScriptedSource } from "./scripted-source.ts";
import { fromSource, play, route, settingsOf, toUrl } from "./stage.ts";

const NAMED = { type: "attribute", name: "to", hosts: ["127.0.0.1"], plainHttp: true, privateAddresses: true } as const;
const LATER = { attempts: 2, backoffMs: 3_600_000, maxBackoffMs: 3_600_000 };

describe("a host that hangs", () => {
  for (const [perHost, expected] of [
    [2, 2],
    [3, 1],
    [20, 1],
  ] as const) {
    test(`gets ${expected} of three slots where it may have ${perHost}, and others are served`, async (context) => {
      const [hanging, well] = [await Receiver.start(context), await Receiver.start(context)];
      hanging.answer = () => undefined;
      const source = new ScriptedSource("orders");
      const processor = { ...toUrl("", { perHost }), target: NAMED };
      const { relay, events } = await play(context, settingsOf(route([source], processor, { concurrency: 3 })));
      const backs = (): readonly string[] =>
        events.flatMap((event) => (event.type === "back" ? [`${event.id}: ${event.reason}`] : []));
      for (const id of ["a", "b", "c"]) source.put(id, { attributes: { to: `${hanging.url}/` } });
      await until(() => hanging.received.length + backs().length === 3, "requests, and messages that go back");
      assert.equal(hanging.received.length, expected);
      assert.ok(backs().every((back) => back.includes("as many requests as it may")));
      assert.equal(source.told.filter((told) => told.endsWith("uncounted later")).length, 3 - expected);
      source.put("d", { attributes: { to: `${well.url}/` } });
      await until(() => source.told.includes("acknowledged d"), "the host that is well");
      assert.equal(relay.report().routes[0]?.inWork, expected);
    });
  }
});

test("a proxy whose application goes away again is knocked at again", async (context) => {
  const receiver = await Receiver.start(context);
  const sockets = new Set<Socket>();
  let isThere = false;
  const proxy = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    if (!isThere) return void socket.end();
    const way = connectTcp(Number(new URL(receiver.url).port), "127.0.0.1");
    way.on("error", () => socket.destroy());
    socket.pipe(way).pipe(socket);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const goAway = (): void => {
    isThere = false;
    for (const socket of sockets) socket.destroy();
  };
  context.after(() => {
    goAway();
    proxy.close();
  });
  const address = proxy.address();
  assert.ok(typeof address === "object" && address !== null);
  const source = new ScriptedSource("orders");
  // So many failures do not come together: what opens the circuit is a knock.
  const processor = toUrl(`http://127.0.0.1:${address.port}/`, { breaker: { failures: 10, openMs: 3_600_000 } });
  const { relay } = await play(context, settingsOf(route([fromSource(source, { retry: LATER })], processor)));
  for (const time of ["first", "second"]) {
    source.put(time);
    await until(() => relay.report().routes[0]?.unreachable.length === 1, `the ${time} outage to be noticed`);
    isThere = true;
    source.put(`after the ${time}`);
    await until(() => source.told.includes(`acknowledged after the ${time}`), `the end of the ${time} outage`);
    goAway();
  }
});

test("a probe that is broken off because its message is lost does not close the circuit", async (context) => {
  const receiver = await Receiver.start(context);
  receiver.answer = (_received, response) => response.writeHead(503).end();
  const source = new ScriptedSource("orders");
  const processor = toUrl(receiver.url, { breaker: { failures: 1, openMs: 50 } });
  const { relay, events } = await play(
    context,
    settingsOf(route([fromSource(source, { retry: LATER })], processor, { concurrency: 1 })),
  );
  source.put("a");
  await until(() => source.told.length === 1, "the circuit to open");
  receiver.answer = () => undefined;
  const probe = source.put("b");
  await until(() => receiver.received.length === 2, "the probe");
  probe.losing.abort(new Error("somebody else has it"));
  await until(() => events.some(({ type }) => type === "lost"), "its end");
  assert.ok(!events.some((event) => event.type === "circuit" && event.state === "closed"));
  assert.deepEqual(relay.report().routes[0]?.openCircuits, [receiver.url]);
});
