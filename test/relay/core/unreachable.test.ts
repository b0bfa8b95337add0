/** A receiver that is away: not a byte was sent to it, so no message may pay for that. */
import assert from "node:assert/strict";
import { connect as connectTcp, createServer as createTcpServer, type Socket } from "node:net";
import { createServer, type IncomingMessage } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { connect } from "../../../src/index.ts";
import { contextOf } from "../../../src/relay/context.ts";
import { judge } from "../../../src/relay/delivery/verdict.ts";
import { batonSource, DEFAULT_COMMAND, type RelayEvent } from "../../../src/relay/index.ts";
import { Breaker } from "../../../src/relay/processors/breaker.ts";
import { freePort } from "../../../servers/free-port.ts";
import { ManualClock } from "../../manual-clock.ts";
import { openSqsDesk, sqsSourceOf } from "../sources/sqs-desk.ts";
import { Lateness } from "../../kit/lateness.ts";
import { Receiver } from "./receiver.ts";
import { ScriptedSource } from "./scripted-source.ts";
import { until } from "../../kit/until.ts";
import { fromSource, play, route, settingsOf, toUrl } from "./stage.ts";

const QUICK = { attempts: 3, backoffMs: 0, maxBackoffMs: 0 };

/** An application that starts late. */
async function listen(t: TestContext, port: number): Promise<readonly IncomingMessage["headers"][]> {
  const seen: IncomingMessage["headers"][] = [];
  const server = createServer((request, response) => {
    seen.push(request.headers);
    request.resume();
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  t.after(() => server.close().closeAllConnections());
  return seen;
}

/** One that accepts connections, and does this with each of them. */
async function accept(t: TestContext, then: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    then(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return address.port;
}

function only<Type extends RelayEvent["type"]>(
  events: readonly RelayEvent[],
  type: Type,
): Extract<RelayEvent, { readonly type: Type }>[] {
  return events.filter((event): event is Extract<RelayEvent, { readonly type: Type }> => event.type === type);
}

describe("an application that cannot be reached", { concurrency: 8 }, () => {
  test("costs its messages no attempt, and few receives: all are delivered when it is there", async (t) => {
    const port = await freePort();
    const source = new ScriptedSource("orders");
    const settings = route([fromSource(source, { retry: QUICK })], toUrl(`http://127.0.0.1:${port}/`), {
      concurrency: 3,
    });
    const admin = { host: "127.0.0.1", port: 0, token: undefined };
    const { relay, events } = await play(t, settingsOf(settings, { admin }));
    const messages = ["a", "b", "c"].map((id) => source.put(id));
    await until(() => only(events, "unreachable").length >= 3, "three deliveries that could not be made");
    const [first] = only(events, "unreachable");
    assert.equal(first?.target, `http://127.0.0.1:${port}`);
    assert.match(first?.reason ?? "", /could not be reached: connect ECONNREFUSED/);
    const [circuit] = only(events, "circuit");
    assert.equal(circuit?.state, "open");
    assert.match(circuit?.reason ?? "", /ECONNREFUSED/);
    assert.deepEqual(relay.report().routes[0]?.unreachable, [`http://127.0.0.1:${port}`]);
    const metrics = await (await fetch(`${relay.adminUrl ?? ""}/metrics`)).text();
    assert.match(metrics, /^baton_relay_unreachable\{target="http:\/\/127\.0\.0\.1:\d+"\} 1$/m);
    assert.match(metrics, /^baton_relay_messages_total\{source="orders",outcome="unreachable"\} 3$/m);
    // Several knocks later, no message has been taken again.
    const receives = messages.map(({ attempt }) => attempt);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    assert.deepEqual(
      messages.map(({ attempt }) => attempt),
      receives,
    );
    const seen = await listen(t, port);
    using lateness = new Lateness();
    const back = performance.now();
    await until(() => only(events, "done").length === 3, "all of them to be delivered");
    lateness.assertWithin(performance.now() - back, 4_000, "the delivery after the receiver was back");
    assert.deepEqual(
      seen.map((headers) => headers["baton-attempt"]),
      ["1", "1", "1"],
    );
    assert.deepEqual(only(events, "dead"), []);
    assert.deepEqual(relay.report().routes[0]?.unreachable, []);
  });

  test("is one whose name nobody knows, that speaks no TLS, or that never finishes a handshake", async (t) => {
    const plain = await accept(t, (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
    const silent = await accept(t, () => undefined);
    const reset = await accept(t, (socket) => socket.resetAndDestroy());
    const urls = [
      "http://no-such-host.invalid/",
      `https://127.0.0.1:${plain}/`,
      `https://127.0.0.1:${silent}/`,
      `https://127.0.0.1:${reset}/`,
    ];
    for (const url of urls) {
      const source = new ScriptedSource("orders");
      const processor = toUrl(url, { connectTimeoutMs: 300 });
      const { events } = await play(t, settingsOf(route([fromSource(source, { retry: QUICK })], processor)));
      source.put("a");
      await until(() => source.told.length > 0, `the end of the delivery to ${url}`);
      assert.equal(source.told[0], "back a uncounted", url);
      assert.equal(only(events, "unreachable").length, 1, url);
    }
  });

  test("is not one that resets a request it was sent: its message may be what kills it", async (t) => {
    const receiver = await Receiver.start(t);
    receiver.answer = (_received, _response, socket) => socket.resetAndDestroy();
    const source = new ScriptedSource("orders");
    const processor = toUrl(receiver.url, { breaker: undefined });
    const { events } = await play(t, settingsOf(route([fromSource(source, { retry: QUICK })], processor)));
    source.put("poison");
    await until(() => only(events, "dead").length === 1, "the poisonous message to be given up");
    assert.equal(receiver.received.length, 3);
    assert.deepEqual(only(events, "unreachable"), []);
    assert.match(only(events, "dead")[0]?.reason ?? "", /broke off before it answered/);
  });

  for (const [how, breakOff] of Object.entries({
    closes: (socket: Socket) => socket.end(),
    resets: (socket: Socket) => setImmediate(() => socket.resetAndDestroy()),
  })) {
    test(`may stand behind a proxy that ${how} connections when a request has come: no message pays twice`, async (t) => {
      const receiver = await Receiver.start(t);
      let isThere = false;
      let refusals = 0;
      const port = await accept(t, (socket) => {
        if (!isThere) {
          refusals += 1;
          // The three deliveries when their request has come, the knocks at once.
          return void (refusals <= 3 ? socket.once("data", () => breakOff(socket)) : breakOff(socket));
        }
        const way = connectTcp(Number(new URL(receiver.url).port), "127.0.0.1");
        way.on("error", () => socket.destroy());
        socket.pipe(way).pipe(socket);
      });
      const source = new ScriptedSource("orders");
      const retry = { attempts: 2, backoffMs: 60_000, maxBackoffMs: 60_000 };
      const settings = route([fromSource(source, { retry })], toUrl(`http://127.0.0.1:${port}/`), { concurrency: 3 });
      const { events, relay } = await play(t, settingsOf(settings));
      const messages = ["a", "b", "c"].map((id) => source.put(id));
      await until(() => relay.report().routes[0]?.unreachable.length === 1, "the circuit to open");
      await until(() => source.told.length === 3, "the messages to go back");
      // Their back-off is over while the application is still away.
      for (const message of messages) source.putBack(message);
      const before = refusals;
      await until(() => refusals >= before + 3, "three knocks");
      assert.equal(source.told.length, 3);
      isThere = true;
      await until(() => only(events, "done").length === 3, "all of them to be delivered");
      assert.deepEqual(only(events, "dead"), []);
      assert.equal(receiver.received.length, 3);
    });
  }

  for (const [how, breakOff] of Object.entries({
    closes: (socket: Socket) => socket.end(),
    destroys: (socket: Socket) => socket.destroy(),
    resets: (socket: Socket) => setImmediate(() => socket.resetAndDestroy()),
  })) {
    test(`may stand behind a proxy that ${how} connections at once: not a byte was sent, no message pays`, async (t) => {
      const receiver = await Receiver.start(t);
      let isThere = false;
      let refusals = 0;
      let bytes = 0;
      const port = await accept(t, (socket) => {
        if (!isThere) {
          refusals += 1;
          socket.on("data", (chunk) => (bytes += chunk.length));
          return void breakOff(socket);
        }
        const way = connectTcp(Number(new URL(receiver.url).port), "127.0.0.1");
        way.on("error", () => socket.destroy());
        socket.pipe(way).pipe(socket);
      });
      const source = new ScriptedSource("orders");
      const retry = { attempts: 1, backoffMs: 0, maxBackoffMs: 0 };
      const settings = route([fromSource(source, { retry })], toUrl(`http://127.0.0.1:${port}/`), { concurrency: 3 });
      const { events, relay } = await play(t, settingsOf(settings));
      for (const id of ["a", "b", "c"]) source.put(id);
      await until(() => relay.report().routes[0]?.unreachable.length === 1, "the circuit to open");
      await until(() => refusals >= 6, "some knocks");
      assert.equal(bytes, 0);
      assert.deepEqual([...new Set(source.told)].toSorted(), [
        "back a uncounted",
        "back b uncounted",
        "back c uncounted",
      ]);
      isThere = true;
      await until(() => only(events, "done").length === 3, "all of them to be delivered");
      assert.deepEqual(only(events, "dead"), []);
      assert.deepEqual(
        receiver.received.map(({ headers }) => headers["baton-attempt"]),
        ["1", "1", "1"],
      );
    });
  }

  test("is probed with one message when it accepts connections again, and not with all", async (t) => {
    const port = await freePort();
    const source = new ScriptedSource("orders");
    const settings = route([fromSource(source, { retry: QUICK })], toUrl(`http://127.0.0.1:${port}/`), {
      concurrency: 3,
    });
    const { events } = await play(t, settingsOf(settings));
    for (const id of ["a", "b", "c"]) source.put(id);
    await until(() => only(events, "unreachable").length >= 3, "the outage");
    // It is there, and does not serve yet.
    let received = 0;
    const server = createServer((_request, response) => {
      received += 1;
      response.writeHead(503).end();
    });
    await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
    t.after(() => server.close().closeAllConnections());
    await until(() => only(events, "retry").length === 1, "the probe");
    assert.equal(received, 1);
    const states = only(events, "circuit").map(({ state }) => state);
    assert.deepEqual(states.slice(-2), ["probing", "open"]);
  });

  test("leaves the dead letters of a quiet SQS queue empty", async (t) => {
    const desk = await openSqsDesk();
    t.after(() => desk[Symbol.asyncDispose]());
    const queue = desk.queue();
    const dead = desk.queue();
    for (const body of ["1", "2", "3"]) desk.send(queue.queue, `{"order":${body}}`);
    const port = await freePort();
    const source = fromSource(await sqsSourceOf(t, { ...queue, deadLetterQueue: dead.queue }), {
      retry: { ...QUICK, attempts: 1 },
    });
    const { events } = await play(
      t,
      settingsOf(route([source], toUrl(`http://127.0.0.1:${port}/`), { concurrency: 3 })),
    );
    await until(() => only(events, "unreachable").length >= 3, "the outage");
    const seen = await listen(t, port);
    await until(() => only(events, "done").length === 3, "all of them to be delivered", 40_000);
    assert.deepEqual(
      seen.map((headers) => [headers["baton-attempt"], headers["content-type"]]),
      Array.from({ length: 3 }, () => ["1", "application/json"]),
    );
    assert.deepEqual(desk.counts(dead.queue), { ready: 0, hidden: 0 });
  });

  test("spends no attempt of an item of a Baton queue", async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "baton-unreachable-"));
    const baton = await connect(`sqlite:${join(folder, "work.db")}`);
    t.after(async () => {
      await baton.close();
      rmSync(folder, { recursive: true });
    });
    const port = await freePort();
    const source = await batonSource({ name: "orders", store: baton, queue: "orders" });
    const settings = fromSource(source, { retry: { ...QUICK, attempts: 1 } });
    const { events } = await play(t, settingsOf(route([settings], toUrl(`http://127.0.0.1:${port}/`))));
    for (const key of ["a", "b", "c"]) await baton.queue("orders").submit(key, key);
    await until(() => only(events, "unreachable").length > 0, "the outage");
    const seen = await listen(t, port);
    await until(() => only(events, "done").length === 3, "all of them");
    assert.ok(seen.every((headers) => headers["baton-attempt"] === "1"));
  });

  test("that is asked for its Dapr subscription opens the circuit as well", async (t) => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const source = new ScriptedSource("orders");
    const target = { type: "dapr-subscription", url, pubsub: "p", topic: "t" } as const;
    const { events } = await play(t, settingsOf(route([source], toUrl(url, { target, replies: "dapr" }))));
    source.put("a");
    await until(() => only(events, "unreachable").length === 1, "the outage");
    assert.equal(only(events, "circuit")[0]?.state, "open");
  });

  test("and has no circuit keeps its messages away for a while, uncounted", async (t) => {
    const source = new ScriptedSource("orders");
    const processor = toUrl(`http://127.0.0.1:${await freePort()}/`, { breaker: undefined });
    const { events } = await play(t, settingsOf(route([fromSource(source, { retry: QUICK })], processor)));
    source.put("a");
    await until(() => source.told.length > 0, "its end");
    assert.deepEqual(source.told, ["back a uncounted later"]);
    const delayMs = only(events, "unreachable")[0]?.delayMs ?? 0;
    assert.ok(delayMs >= 5_000 && delayMs <= 10_000, String(delayMs));
  });

  test("and that a message names itself: a host that is away is not its fault, a name that nobody has is", async (t) => {
    const hosts = ["127.0.0.1", "no-such-host.invalid"];
    const target = { type: "attribute", name: "callback", hosts, plainHttp: true, privateAddresses: true } as const;
    const source = new ScriptedSource("orders");
    const later = { attempts: 3, backoffMs: 3_600_000, maxBackoffMs: 3_600_000 };
    const { events } = await play(
      t,
      settingsOf(route([fromSource(source, { retry: later })], { ...toUrl(""), target })),
    );
    source.put("away", { attributes: { callback: `http://127.0.0.1:${await freePort()}/` } });
    await until(() => source.told.includes("back away uncounted later"), "the host that is away");
    assert.equal(only(events, "unreachable")[0]?.id, "away");
  });

  test("gives its messages up by their age, where the operator says so", async (t) => {
    const source = new ScriptedSource("orders");
    const processor = toUrl(`http://127.0.0.1:${await freePort()}/`);
    const settings = fromSource(source, { retry: { ...QUICK, maxAgeMs: 3_600_000 } });
    await play(t, settingsOf(route([settings], processor)));
    // It has been in its queue since 2023.
    source.put("a");
    await until(() => source.told.length > 0, "its end");
    assert.match(source.told[0] ?? "", /^buried a: Given up because it is older than 1h: .* could not be reached/);
  });

  test("may be a command that is not there", async (t) => {
    const source = new ScriptedSource("orders");
    const processor = { ...DEFAULT_COMMAND, command: "/no/such/program" };
    const { events, relay } = await play(t, settingsOf(route([fromSource(source, { retry: QUICK })], processor)));
    source.put("a");
    await until(() => source.told.length > 0, "its end");
    assert.deepEqual(source.told, ["back a uncounted"]);
    assert.match(only(events, "unreachable")[0]?.reason ?? "", /could not be started/);
    assert.deepEqual(relay.report().routes[0]?.openCircuits, ["/no/such/program"]);
  });
});

test("age gives up what failed, too, and nothing that the queue does not date", () => {
  const retry = { ...QUICK, attempts: Infinity, maxAgeMs: 1_000 };
  const failed = { type: "retry", reason: "x" } as const;
  assert.equal(judge(failed, 1, retry, Math.random, 999).type, "retry");
  assert.equal(judge(failed, 1, retry, Math.random, 1_000).type, "dead");
  assert.equal(judge(failed, 1, retry, Math.random).type, "retry");
  assert.equal(judge({ type: "done" }, 1, retry, Math.random, 5_000).type, "done");
});

test("a circuit that is open for an outage opens when a knock is heard, and for one probe only", async () => {
  const clock = new ManualClock();
  let isThere = false;
  let knocks = 0;
  const knock = (): Promise<boolean> => Promise.resolve((knocks += 1) > 0 && isThere);
  const breaker = new Breaker(
    contextOf({ clock, random: () => 1 }),
    { failures: 10, openMs: 10_000 },
    { target: "http://a", probeMs: 6_000, onRoom: () => undefined, knock },
  );
  breaker.unreachable("it is away");
  assert.deepEqual([breaker.isOpen, breaker.isUnreachable, breaker.room], [true, true, 0]);
  await clock.pass(60_000);
  assert.ok(knocks >= 30 && knocks <= 40, `${knocks} knocks in a minute`);
  // A delivery that was under way ends well: the listener may be gone all the same.
  breaker.succeeded();
  assert.ok(breaker.isUnreachable);
  isThere = true;
  await clock.pass(2_000);
  assert.deepEqual([breaker.isUnreachable, breaker.enter(), breaker.enter()], [false, true, false]);
  breaker.unreachable("away again");
  assert.deepEqual([breaker.isUnreachable, breaker.room], [true, 0]);
  await clock.pass(2_000);
  assert.ok(breaker.enter());
  breaker.succeeded();
  assert.deepEqual([breaker.isOpen, breaker.room], [false, Infinity]);
  breaker.close();
});
