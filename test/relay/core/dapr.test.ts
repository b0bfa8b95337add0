/** Applications that were written for Dapr, with its own SDK, and CloudEvents as their SDK reads them. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { DaprPubSubStatusEnum, DaprServer, LogLevel } from "@dapr/dapr";
import { type CloudEvent, HTTP } from "cloudevents";
import type { RouteSettings } from "../../../src/relay/index.ts";
import { ScriptedSource } from "./scripted-source.ts";
import { Receiver } from "./receiver.ts";
import { until } from "../../kit/until.ts";
import { fromSource, play, route, settingsOf, toUrl } from "./stage.ts";
import { freePort } from "../../../servers/free-port.ts";

const RETRY = { attempts: 3, backoffMs: 0, maxBackoffMs: 0 };
const DAPR = { type: "dapr", pubsub: "aws", topic: "orders", wrap: undefined } as const;

/** A real application: it subscribes, and says what is to become of each message. */
async function startApplication(context: TestContext): Promise<{ url: string; seen: unknown[]; route: string }> {
  const port = await freePort();
  const seen: unknown[] = [];
  const server = new DaprServer({
    serverHost: "127.0.0.1",
    serverPort: String(port),
    clientOptions: { daprHost: "127.0.0.1", daprPort: "1" },
    logger: { level: LogLevel.Error },
  });
  await server.pubsub.subscribeWithOptions("aws", "orders", {
    route: "/on-order",
    callback: (data: unknown) => {
      seen.push(data);
      const wish = (data as { wish?: string }).wish;
      if (wish === "drop") return Promise.resolve(DaprPubSubStatusEnum.DROP);
      const isFirst = seen.filter((one) => one === data || JSON.stringify(one) === JSON.stringify(data)).length === 1;
      if (wish === "retry" && isFirst) return Promise.resolve(DaprPubSubStatusEnum.RETRY);
      return Promise.resolve(DaprPubSubStatusEnum.SUCCESS);
    },
  });
  // Without the sidecar that its client would wait for: the relay is in its place.
  await server.daprServer.start("127.0.0.1", String(port));
  context.after(() => server.stop());
  return { url: `http://127.0.0.1:${port}`, seen, route: "/on-order" };
}

function event(id: string, data: unknown): Buffer {
  const fields = { specversion: "1.0", id, source: "shop", type: "order.placed", datacontenttype: "application/json" };
  return Buffer.from(JSON.stringify({ ...fields, data }));
}

describe("an application written for Dapr", () => {
  test("needs no change: it is found by its subscription, and its answers are obeyed", async (context) => {
    const { url, seen } = await startApplication(context);
    const source = new ScriptedSource("orders");
    const processor = toUrl(url, {
      target: { type: "dapr-subscription", url, pubsub: "aws", topic: "orders" },
      replies: "dapr",
    });
    const { events } = await play(
      context,
      settingsOf(route([fromSource(source, { retry: RETRY })], processor, { form: DAPR, concurrency: 1 })),
    );
    source.put("1", { data: event("e1", { wish: "success" }) });
    source.put("2", { data: event("e2", { wish: "retry" }) });
    source.put("3", { data: event("e3", { wish: "drop" }) });
    await until(() => source.told.length === 4, "all of them");
    assert.deepEqual(source.told.toSorted(), ["acknowledged 1", "acknowledged 2", "acknowledged 3", "back 2"]);
    assert.deepEqual(events.map(({ type }) => type).toSorted(), ["done", "done", "drop", "retry", "started"]);
    assert.equal(seen.length, 4);
    assert.deepEqual(seen[0], { wish: "success" });
  });

  test("that has no such subscription leaves the message where it is", async (context) => {
    const { url } = await startApplication(context);
    const source = new ScriptedSource("orders");
    const target = { type: "dapr-subscription", url, pubsub: "aws", topic: "returns" } as const;
    const { events } = await play(context, settingsOf(route([source], toUrl(url, { target, replies: "dapr" }))));
    source.put("1");
    await until(() => source.told.length > 0, "its end");
    assert.deepEqual(source.told, ["back 1 uncounted later"]);
    assert.ok(
      events.some((one) => one.type === "trouble" && String(one.error).includes("no subscription to topic returns")),
    );
  });

  test("that has moved its route is asked again before a 404 drops anything", async (context) => {
    const receiver = await Receiver.start(context);
    let path: string | undefined = "/old";
    receiver.answer = ({ url }, response) => {
      if (url === path) return response.writeHead(200).end();
      if (url !== "/dapr/subscribe") return response.writeHead(404).end();
      const subscriptions = path === undefined ? [] : [{ pubsubname: "aws", topic: "orders", route: path }];
      return response.writeHead(200).end(JSON.stringify(subscriptions));
    };
    const source = new ScriptedSource("orders");
    const target = { type: "dapr-subscription", url: receiver.url, pubsub: "aws", topic: "orders" } as const;
    await play(context, settingsOf(route([source], toUrl(receiver.url, { target, replies: "dapr" }))));
    const next = async (id: string): Promise<string | undefined> => {
      const before = source.told.length;
      source.put(id);
      await until(() => source.told.length > before, `the end of ${id}`);
      return source.told.at(-1);
    };
    assert.equal(await next("1"), "acknowledged 1");
    path = "/new";
    assert.equal(await next("2"), "acknowledged 2");
    assert.equal(receiver.received.at(-1)?.url, "/new");
    assert.equal(await next("3"), "acknowledged 3");
    path = undefined;
    assert.equal(await next("4"), "back 4 uncounted later");
    const asked = receiver.received.filter(({ url }) => url === "/dapr/subscribe");
    assert.equal(asked.length, 3);
  });

  test("answers as Dapr reads them: unknown is tried again, 404 drops, nothing is success", async (context) => {
    const receiver = await Receiver.start(context);
    const answers: Readonly<Record<string, readonly [number, string]>> = {
      empty: [200, ""],
      text: [200, "thank you"],
      success: [200, '{"status":"SUCCESS"}'],
      none: [200, '{"status":""}'],
      unknown: [200, '{"status":"PERHAPS"}'],
      number: [200, '{"status":7}'],
      capital: [200, '{"Status":"RETRY"}'],
      list: [200, '["RETRY"]'],
      drop: [202, '{"status":"DROP"}'],
      gone: [404, ""],
      broken: [500, '{"status":"SUCCESS"}'],
      long: [200, `{"why":"${"x".repeat(65_536)}","status":"RETRY"}`],
      fits: [200, `${" ".repeat(65_536 - 19)}{"status":"SUCCESS"}`.slice(-65_536)],
    };
    receiver.answer = ({ headers }, response) => {
      const [status, body] = answers[String(headers["baton-id"])] ?? [500, ""];
      response.writeHead(status).end(body);
    };
    const source = new ScriptedSource("orders");
    const later = { attempts: 3, backoffMs: 3_600_000, maxBackoffMs: 3_600_000 };
    const { events } = await play(
      context,
      settingsOf(route([fromSource(source, { retry: later })], toUrl(receiver.url, { replies: "dapr" }))),
    );
    for (const id of Object.keys(answers)) source.put(id);
    await until(() => source.told.length === 13, "all of them");
    const ends = Object.fromEntries(events.flatMap((one) => ("id" in one ? [[one.id, one.type]] : [])));
    assert.deepEqual(ends, {
      empty: "done",
      text: "done",
      success: "done",
      none: "done",
      unknown: "retry",
      number: "retry",
      capital: "retry",
      list: "done",
      drop: "drop",
      gone: "drop",
      broken: "retry",
      // What was cut off said RETRY.
      long: "retry",
      fits: "done",
    });
  });
});

describe("CloudEvents", () => {
  test("arrive structured, as they are, with what Dapr adds", async (context) => {
    const receiver = await Receiver.start(context);
    const source = new ScriptedSource("orders");
    await play(context, settingsOf(route([source], toUrl(receiver.url), { form: DAPR })));
    source.put("1", { data: event("e1", { a: 1 }) });
    await until(() => source.told.length === 1, "its end");
    const [received] = receiver.received;
    assert.equal(received?.headers["content-type"], "application/cloudevents+json");
    const { pubsubname, topic, data, id } = JSON.parse(String(received?.body)) as Record<string, unknown>;
    assert.deepEqual({ pubsubname, topic, data, id }, { pubsubname: "aws", topic: "orders", data: { a: 1 }, id: "e1" });
  });

  test("are made of plain messages where the route says so, in both modes", async (context) => {
    for (const mode of ["structured", "binary"] as const) {
      const receiver = await Receiver.start(context);
      const source = new ScriptedSource("orders");
      const form = { type: "cloudevents", mode, wrap: { source: "shop", type: "order.placed" } } as const;
      await play(context, settingsOf(route([source], toUrl(receiver.url), { form })));
      source.put("json", { data: Buffer.from('{"a":1}'), key: "k1" });
      source.put("text", { data: Buffer.from("hello"), contentType: "text/plain" });
      source.put("bytes", { data: Buffer.from([1, 255]), contentType: "application/x-raw" });
      await until(() => source.told.length === 3, "all of them");
      const events = receiver.received.map(({ headers, body }) => {
        const isText = !String(headers["content-type"]).includes("x-raw");
        return HTTP.toEvent({ headers, body: isText ? body.toString() : body }) as CloudEvent<unknown>;
      });
      const found = Object.fromEntries(events.map((one) => [one.id, one]));
      assert.deepEqual(found["json"]?.data, { a: 1 });
      assert.equal(found["json"]?.["partitionkey"], "k1");
      assert.equal(found["json"]?.time, new Date(1_700_000_000_000).toISOString());
      assert.equal(found["text"]?.data, "hello");
      assert.deepEqual(Buffer.from(found["bytes"]?.data as Uint8Array), Buffer.from([1, 255]));
      for (const one of events) assert.deepEqual([one.source, one.type], ["shop", "order.placed"]);
    }
  });

  test("keep the text of JSON: its numbers are not read and written anew", async (context) => {
    const exact = '{"n": 12345678901234567890, "price":1.10}';
    const wrap = { source: "shop", type: "order.placed" };
    const fields = '"specversion":"1.0","id":"e1","source":"shop","type":"order.placed"';
    const bodyOf = async (form: RouteSettings["form"], data: string): Promise<string> => {
      const receiver = await Receiver.start(context);
      const source = new ScriptedSource("orders");
      await play(context, settingsOf(route([source], toUrl(receiver.url), { form })));
      source.put("1", { data: Buffer.from(data) });
      await until(() => source.told.length === 1, "its end");
      const body = String(receiver.received[0]?.body);
      JSON.parse(body);
      return body;
    };
    const wrapped = await bodyOf({ type: "cloudevents", mode: "structured", wrap }, exact);
    assert.ok(wrapped.endsWith(`,"data":${exact}}`), wrapped);
    assert.equal(await bodyOf({ type: "cloudevents", mode: "binary", wrap }, exact), exact);
    const added = await bodyOf(DAPR, `{${fields},"data":${exact}}\n`);
    assert.equal(added, `{${fields},"data":${exact},"pubsubname":"aws","topic":"orders"}`);
  });

  test("have in binary mode the headers that the standard wants, and none that they did not have", async (context) => {
    const receiver = await Receiver.start(context);
    const source = new ScriptedSource("orders");
    const form = { type: "cloudevents", mode: "binary", wrap: undefined } as const;
    await play(context, settingsOf(route([source], toUrl(receiver.url), { form, concurrency: 1 })));
    const fields = { specversion: "1.0", source: "shop", type: "order.placed", data: {} };
    const time = "2026-01-02T03:04:05.123456+02:00";
    source.put("1", { data: Buffer.from(JSON.stringify({ ...fields, id: "e1", subject: 'say "hi" 5%', count: 7 })) });
    source.put("2", { data: Buffer.from(JSON.stringify({ ...fields, id: "e2", time })) });
    await until(() => source.told.length === 2, "both");
    const [first, second] = receiver.received.map(({ headers }) => headers);
    assert.equal(first?.["ce-subject"], "say%20%22hi%22%205%25");
    assert.deepEqual([first?.["ce-count"], first?.["ce-time"]], ["7", undefined]);
    assert.equal(second?.["ce-time"], time);
  });

  test("that are none, and are not to be wrapped, are bad data", async (context) => {
    const receiver = await Receiver.start(context);
    const source = new ScriptedSource("orders");
    const form = { type: "cloudevents", mode: "structured", wrap: undefined } as const;
    await play(context, settingsOf(route([source], toUrl(receiver.url), { form })));
    source.put("plain", { data: Buffer.from('{"a":1}') });
    source.put("empty type", { data: Buffer.from('{"specversion":"1.0","id":"","source":"a","type":""}') });
    source.put("claims", { data: Buffer.from("{}"), contentType: "application/cloudevents+json" });
    await until(() => source.told.length === 3, "all of them");
    assert.ok(source.told.every((told) => told.startsWith("buried")));
    assert.equal(receiver.received.length, 0);
  });
});
