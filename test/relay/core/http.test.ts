import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Webhook } from "standardwebhooks";
import { ScriptedSource } from "./scripted-source.ts";
import { Receiver } from "./receiver.ts";
import { until } from "../../kit/until.ts";
import { fromSource, play, type Played, route, settingsOf, toUrl } from "./stage.ts";

const LATER = { attempts: 3, backoffMs: 3_600_000, maxBackoffMs: 3_600_000 };
const ONCE = { attempts: 1, backoffMs: 0, maxBackoffMs: 0 };

/** What the relay tells of one message. */
async function endOf({ events }: Played, id: string): Promise<string> {
  const find = (): (typeof events)[number] | undefined => events.find((event) => "id" in event && event.id === id);
  await until(() => find() !== undefined, `the end of ${id}`);
  const event = find();
  return event !== undefined && "reason" in event ? `${event.type}: ${event.reason}` : String(event?.type);
}

describe("a delivery by HTTP", { concurrency: 8 }, () => {
  test("carries the data as it is, and what is known of it in headers", async (context) => {
    const receiver = await Receiver.start(context);
    const source = new ScriptedSource("cars");
    const played = await play(
      context,
      settingsOf(route([source], toUrl(`${receiver.url}/in?x=1`, { method: "PUT", headers: { "x-team": "paint" } }))),
    );
    source.put("odd", { contentType: "text/plain\r\nx-evil: 1" });
    assert.equal(await endOf(played, "odd"), "done");
    assert.equal(receiver.received.pop()?.headers["content-type"], "application/octet-stream");
    source.put("m.1", { key: "Wagen 1 % ü", fence: 12, data: Buffer.from([0, 255, 10]), contentType: "image/x-car" });
    assert.equal(await endOf(played, "m.1"), "done");
    const [received] = receiver.received;
    assert.ok(received);
    assert.deepEqual([received.method, received.url], ["PUT", "/in?x=1"]);
    assert.deepEqual(received.body, Buffer.from([0, 255, 10]));
    const { headers } = received;
    assert.equal(headers["content-type"], "image/x-car");
    assert.equal(headers["x-team"], "paint");
    assert.equal(headers["baton-id"], "m.1");
    assert.equal(decodeURIComponent(String(headers["baton-key"])), "Wagen 1 % ü");
    assert.equal(headers["baton-attempt"], "1");
    assert.equal(headers["baton-fence"], "12");
    assert.equal(headers["baton-queue"], "cars");
    assert.equal(headers["webhook-id"], undefined);
  });

  test("ends as its status says", async (context) => {
    const receiver = await Receiver.start(context);
    receiver.answer = ({ headers }, response) => response.writeHead(Number(headers["baton-id"])).end("because");
    const source = new ScriptedSource("cars");
    const fatal = { codes: [400, 422], action: "dead-letter" } as const;
    const played = await play(
      context,
      settingsOf(route([fromSource(source, { retry: LATER })], toUrl(receiver.url, { fatal, breaker: undefined }))),
    );
    for (const status of ["200", "202", "204", "299"]) {
      source.put(status);
      assert.equal(await endOf(played, status), "done");
    }
    for (const status of ["400", "422"]) {
      source.put(status);
      assert.equal(await endOf(played, status), `dead: The receiver answered ${status}: because`);
    }
    // A redirect is not followed: it is a failure like any other.
    for (const status of ["301", "307", "401", "404", "409", "500", "502"]) {
      source.put(status);
      assert.equal(await endOf(played, status), `retry: The receiver answered ${status}: because`);
    }
    assert.equal(receiver.received.length, 13);
    // One connection does for all that came one after the other.
    assert.equal(receiver.connections.size, 1);
  });

  test("that is refused for good can be dropped", async (context) => {
    const receiver = await Receiver.start(context);
    receiver.answer = (_, response) => response.writeHead(410).end();
    const source = new ScriptedSource("cars");
    const fatal = { codes: [410], action: "drop" } as const;
    const played = await play(context, settingsOf(route([source], toUrl(receiver.url, { fatal }))));
    source.put("a");
    assert.equal(await endOf(played, "a"), "drop: The receiver answered 410.");
    assert.deepEqual(source.told, ["acknowledged a"]);
  });

  test("comes again when the receiver says, within an hour", async (context) => {
    const receiver = await Receiver.start(context);
    const wishes: Readonly<Record<string, string>> = {
      seconds: "120",
      date: new Date(Date.now() + 600_000).toUTCString(),
      past: "Wed, 21 Oct 2015 07:28:00 GMT",
      long: "86400",
      nonsense: "soon",
    };
    receiver.answer = ({ headers }, response) => {
      const wish = wishes[String(headers["baton-id"])] ?? "";
      response.writeHead(wish === "120" ? 429 : 503, { "retry-after": wish }).end();
    };
    const source = new ScriptedSource("cars");
    const { events } = await play(context, settingsOf(route([source], toUrl(receiver.url, { breaker: undefined }))));
    for (const id of Object.keys(wishes)) source.put(id);
    await until(() => source.told.length >= 5, "all of them");
    const delays = Object.fromEntries(
      events.flatMap((event) => (event.type === "retry" ? [[event.id, event.delayMs]] : [])),
    );
    assert.equal(delays["seconds"], 120_000);
    assert.ok(delays["date"] !== undefined && delays["date"] > 580_000 && delays["date"] <= 601_000);
    assert.equal(delays["past"], 0);
    assert.equal(delays["long"], 3_600_000);
    assert.ok(delays["nonsense"] !== undefined && delays["nonsense"] <= 10);
  });

  test("is signed so that the standard's own library accepts it, with the old secret and the new", async (context) => {
    const receiver = await Receiver.start(context);
    const source = new ScriptedSource("cars");
    const secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"];
    const played = await play(context, settingsOf(route([source], toUrl(receiver.url, { signingSecrets: secrets }))));
    source.put("with.dot");
    await endOf(played, "with.dot");
    const [received] = receiver.received;
    assert.ok(received);
    const headers = Object.fromEntries(Object.entries(received.headers).map(([name, value]) => [name, String(value)]));
    assert.ok(!headers["webhook-id"]?.includes("."));
    for (const secret of secrets) new Webhook(secret).verify(received.body.toString(), headers);
    assert.throws(() =>
      new Webhook("whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA").verify(received.body.toString(), headers),
    );
    assert.throws(() => new Webhook(String(secrets[0])).verify("changed", headers));
  });

  test("survives receivers that reset, answer garbage, trickle and never stop", async (context) => {
    const receiver = await Receiver.start(context);
    const timers: NodeJS.Timeout[] = [];
    context.after(() => timers.forEach((timer) => clearInterval(timer)));
    receiver.answer = ({ headers }, response, socket) => {
      switch (headers["baton-id"]) {
        case "reset":
          return socket.resetAndDestroy();
        case "half":
          socket.write("HTTP/1.1 200 OK\r\ncontent-le");
          return socket.end();
        case "garbage":
          return socket.end("I am not HTTP at all\r\n\r\n");
        case "endless": {
          response.writeHead(500);
          const flood = (): void => {
            while (!response.destroyed && response.write("x".repeat(16_384)));
          };
          response.on("drain", flood);
          return flood();
        }
        case "trickle":
          response.writeHead(200).write(".");
          return timers.push(setInterval(() => response.write("."), 100));
        case "broken body":
          response.writeHead(200, { "content-length": 100 }).write("half of");
          return setTimeout(() => socket.destroy(), 20);
        default:
          return response.end();
      }
    };
    const source = new ScriptedSource("cars");
    const settings = settingsOf(route([source], toUrl(receiver.url), { concurrency: 10 }));
    const played = await play(context, settings);
    for (const id of ["reset", "half", "garbage", "endless", "trickle", "broken body"]) source.put(id);
    for (const id of ["reset", "half", "garbage"])
      assert.match(await endOf(played, id), /^retry: .* broke off before it answered/);
    assert.match(await endOf(played, "endless"), /^retry: The receiver answered 500: x{300,}…$/);
    // The status was said, and it was that all is well.
    assert.equal(await endOf(played, "broken body"), "done");
    assert.equal(await endOf(played, "trickle"), "done");
    source.put("good");
    assert.equal(await endOf(played, "good"), "done");
  });

  test("to a receiver that hangs is broken off in time, and holds up no other route", async (context) => {
    const [hanging, well] = [await Receiver.start(context), await Receiver.start(context)];
    hanging.answer = () => undefined;
    const [one, two] = [new ScriptedSource("one"), new ScriptedSource("two")];
    const played = await play(
      context,
      settingsOf([
        route([one], toUrl(hanging.url, { timeoutMs: 400 }), { name: "hanging", concurrency: 2 }),
        route([two], toUrl(well.url), { name: "well", concurrency: 2 }),
      ]),
    );
    for (let index = 0; index < 6; index += 1) one.put(`h${index}`);
    await until(() => hanging.received.length >= 2, "the hanging ones");
    for (let index = 0; index < 6; index += 1) two.put(`w${index}`);
    await until(() => well.received.length === 6, "those to the receiver that is well");
    assert.equal(one.mostInHand, 2);
    assert.match(await endOf(played, "h0"), /^retry: The delivery took longer than 400ms/);
  });

  test("that nobody listens for opens the circuit: nothing is received, and one probe at a time looks", async (context) => {
    const receiver = await Receiver.start(context);
    // Three failures, and a probe that fails too.
    receiver.answer = (_, response) => response.writeHead(receiver.received.length <= 4 ? 503 : 200).end();
    const source = new ScriptedSource("cars");
    const processor = toUrl(receiver.url, { breaker: { failures: 3, openMs: 300 } });
    const { events } = await play(
      context,
      settingsOf(route([fromSource(source, { retry: ONCE })], processor, { concurrency: 1 })),
    );
    for (let index = 0; index < 10; index += 1) source.put(`m${index}`, { key: `k${index}` });
    await until(() => source.told.length === 10, "all of them");
    assert.equal(receiver.received.length, 10);
    const states = events.flatMap((event) => (event.type === "circuit" ? [event.state] : []));
    assert.deepEqual(states, ["open", "probing", "open", "probing", "closed"]);
  });

  test("of one key that fails for ever does not open the circuit for others", async (context) => {
    const receiver = await Receiver.start(context);
    receiver.answer = ({ headers }, response) => response.writeHead(headers["baton-key"] === "bad" ? 503 : 200).end();
    const source = new ScriptedSource("cars");
    const retry = { attempts: 20, backoffMs: 0, maxBackoffMs: 0 };
    const processor = toUrl(receiver.url, { breaker: { failures: 3, openMs: 60_000 } });
    const played = await play(context, settingsOf(route([fromSource(source, { retry })], processor)));
    source.put("hopeless", { key: "bad" });
    await until(() => source.told.some((told) => told.startsWith("buried")), "twenty attempts in a row");
    source.put("good", { key: "good" });
    assert.equal(await endOf(played, "good"), "done");
  });
});
