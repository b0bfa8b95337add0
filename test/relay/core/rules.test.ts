/** The small rules, each by itself: attempts, addresses, targets out of messages, header texts, slots. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { contextOf } from "../../../src/relay/context.ts";
import { Attempts } from "../../../src/relay/delivery/attempts.ts";
import { judge } from "../../../src/relay/delivery/verdict.ts";
import type { RelayMessage } from "../../../src/relay/index.ts";
import { isPublicAddress } from "../../../src/relay/processors/http/addresses.ts";
import { Breaker } from "../../../src/relay/processors/breaker.ts";
import { headerText } from "../../../src/relay/processors/http/headers.ts";
import { retryAfterMs } from "../../../src/relay/processors/http/retry-after.ts";
import { urlOfMessage } from "../../../src/relay/processors/http/target.ts";
import { Slots } from "../../../src/relay/slots.ts";
import { ManualClock } from "../../manual-clock.ts";
import { Receiver } from "./receiver.ts";
import { ScriptedSource } from "./scripted-source.ts";
import { until } from "../../kit/until.ts";
import { fromSource, play, route, settingsOf, toUrl } from "./stage.ts";

describe("attempts", () => {
  const source = new ScriptedSource("cars");
  const message = (attempt: number | undefined): ReturnType<ScriptedSource["put"]> =>
    new ScriptedSource("x").put("a", { attempt });

  test("are those of a source that counts", () => {
    const attempts = new Attempts();
    assert.equal(attempts.of(message(1)), 1);
    attempts.note(message(1), 1, true);
    assert.equal(attempts.of(message(2)), 2);
    assert.ok(source);
  });

  test("leave out what went back untried, whether or not the source counted it", () => {
    const attempts = new Attempts();
    attempts.note(message(1), 1, false);
    // It counted the receipt.
    assert.equal(attempts.of(message(2)), 1);
    // It did not.
    assert.equal(attempts.of(message(1)), 1);
    // Somebody else tried it meanwhile.
    assert.equal(attempts.of(message(3)), 2);
    attempts.note(message(2), 1, false);
    assert.equal(attempts.of(message(3)), 1);
  });

  test("are counted here where the source does not", () => {
    const attempts = new Attempts();
    const uncounted = message(undefined);
    assert.equal(attempts.of(uncounted), 1);
    attempts.note(uncounted, 1, true);
    assert.equal(attempts.of(uncounted), 2);
    attempts.note(uncounted, 2, false);
    assert.equal(attempts.of(uncounted), 2);
    attempts.forget("a");
    assert.equal(attempts.of(uncounted), 1);
  });
});

test("a retry waits a random part of a time that doubles, unless the receiver said when", () => {
  const retry = { attempts: 10, backoffMs: 100, maxBackoffMs: 1_000 };
  const delay = (attempt: number, random: number): unknown =>
    Reflect.get(
      judge({ type: "retry", reason: "" }, attempt, retry, () => random),
      "delayMs",
    );
  assert.deepEqual(
    [1, 2, 3, 4, 9].map((attempt) => delay(attempt, 1)),
    [100, 200, 400, 800, 1_000],
  );
  assert.equal(delay(3, 0.5), 200);
  assert.equal(
    Reflect.get(
      judge({ type: "retry", reason: "", delayMs: 7 }, 1, retry, () => 1),
      "delayMs",
    ),
    7,
  );
  assert.equal(judge({ type: "retry", reason: "x" }, 10, retry, () => 1).type, "dead");
  assert.equal(judge({ type: "retry", reason: "x" }, 10_000, { ...retry, attempts: Infinity }, () => 1).type, "retry");
});

test("an hour is the longest that a receiver can ask for", () => {
  const now = Date.parse("2026-01-01T00:00:00Z");
  assert.equal(retryAfterMs("5", now), 5_000);
  assert.equal(retryAfterMs("Thu, 01 Jan 2026 00:00:30 GMT", now), 30_000);
  assert.equal(retryAfterMs("999999999999", now), 3_600_000);
  for (const nonsense of [undefined, "", "-1", "1.5", "tomorrow"]) assert.equal(retryAfterMs(nonsense, now), undefined);
});

test("header texts are visible ASCII, and can be read back", () => {
  for (const text of ["plain-1/2:3", "a b", "50%", "ü🚗\n\r\t", "%41"]) {
    const header = headerText(text);
    assert.match(header, /^[\u0021-\u007e]+$/);
    assert.equal(decodeURIComponent(header), text);
  }
  assert.equal(headerText("plain-1/2:3"), "plain-1/2:3");
  assert.equal(headerText("\ud800"), "%EF%BF%BD");
});

test("only addresses of the public internet are public", () => {
  for (const address of ["93.184.216.34", "8.8.8.8", "2606:4700::1111", "172.32.0.1", "100.128.0.1"])
    assert.ok(isPublicAddress(address), address);
  for (const address of [
    "127.0.0.1",
    "127.9.9.9",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fc00::1",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "2001:db8::1",
    "example.com",
    "",
  ]) {
    assert.ok(!isPublicAddress(address), address);
  }
});

describe("a URL out of a message", () => {
  const target = {
    type: "attribute",
    name: "callback",
    hosts: ["hooks.example.com", "*.example.org", "127.0.0.1", "169.254.169.254", "[::1]"],
    plainHttp: false,
    privateAddresses: false,
  } as const;
  const message = (callback?: string): RelayMessage => ({
    id: "a",
    source: "s",
    key: undefined,
    attempt: 1,
    fence: undefined,
    sentAt: undefined,
    data: new Uint8Array(),
    contentType: undefined,
    attributes: callback === undefined ? {} : { Callback: callback },
    headers: {},
    signal: new AbortController().signal,
  });

  test("is taken where it may lead, and refused everywhere else", () => {
    assert.equal(urlOfMessage(message("https://hooks.example.com/x"), target).href, "https://hooks.example.com/x");
    assert.equal(urlOfMessage(message("https://a.b.example.org"), target).hostname, "a.b.example.org");
    const refused: readonly (readonly [string | undefined, RegExp])[] = [
      [undefined, /no attribute callback/],
      ["not a url", /is not a URL/],
      ["http://hooks.example.com/", /by http: .* not allowed/],
      ["ftp://hooks.example.com/", /by ftp:/],
      ["https://user:pw@hooks.example.com/", /password/],
      ["https://evil.example.net/", /not among the allowed hosts/],
      ["https://example.org/", /not among the allowed hosts/],
      ["https://evilexample.org/", /not among the allowed hosts/],
      ["https://127.0.0.1/", /not a public address/],
      ["https://2130706433/", /not a public address/],
      ["https://0x7f.1/", /not a public address/],
      ["https://169.254.169.254/latest", /not a public address/],
      ["https://[::1]/", /not a public address/],
    ];
    for (const [url, expected] of refused) assert.throws(() => urlOfMessage(message(url), target), expected, url);
  });

  test("whose name leads to this machine is bad data, and nothing is sent", async (context) => {
    const source = new ScriptedSource("cars");
    const processor = toUrl("", {
      target: { type: "attribute", name: "callback", hosts: ["localhost"], plainHttp: true, privateAddresses: false },
    });
    await play(context, settingsOf(route([fromSource(source)], processor)));
    source.put("a", { attributes: { callback: "http://localhost:1/" } });
    await until(() => source.told.length === 1, "its end");
    assert.match(source.told[0] ?? "", /^buried a: localhost leads to (127\.0\.0\.1|::1), which is not public/);
  });
});

test("a probe that goes on for hours does not keep the others waiting; one that fails does", async () => {
  const clock = new ManualClock();
  let told = 0;
  const context = contextOf({ clock });
  const breaker = new Breaker(
    context,
    { failures: 1, openMs: 10_000 },
    { target: "http://a", probeMs: 6_000, onRoom: () => (told += 1), knock: undefined },
  );
  breaker.failed("a");
  assert.equal(breaker.room, 0);
  await clock.pass(10_000);
  assert.deepEqual([breaker.room, breaker.enter(), breaker.room], [1, true, 0]);
  await clock.pass(5_000);
  assert.ok(breaker.isOpen);
  breaker.failed("b");
  await clock.pass(1_000);
  assert.ok(breaker.isOpen, "the probe failed before its time");
  await clock.pass(9_000);
  assert.ok(breaker.enter());
  told = 0;
  await clock.pass(6_000);
  assert.deepEqual([breaker.isOpen, breaker.room, told], [false, Infinity, 1]);
});

test("a slot goes from hand to hand, the most urgent first, and never to two", async () => {
  let changes = 0;
  const slots = new Slots(1, () => (changes += 1));
  slots.take();
  const order: string[] = [];
  const over = new AbortController();
  const { signal } = new AbortController();
  const waiting = [
    slots.wait(1, signal).then((got) => order.push(`low ${got}`)),
    slots.wait(0, signal).then((got) => order.push(`high ${got}`)),
    slots.wait(0, over.signal).then((got) => order.push(`gone ${got}`)),
  ];
  over.abort();
  await waiting[2];
  slots.release();
  await waiting[1];
  assert.equal(slots.free, 0);
  slots.release();
  await waiting[0];
  slots.release();
  assert.deepEqual(order, ["gone false", "high true", "low true"]);
  assert.deepEqual([slots.free, changes], [1, 1]);
  assert.equal(await slots.wait(0, AbortSignal.abort()), false);
});

test("a host that hangs has half of the slots at most, where messages say their URL", async (context) => {
  const [hanging, well] = [await Receiver.start(context), await Receiver.start(context)];
  hanging.answer = () => undefined;
  const source = new ScriptedSource("cars");
  const target = {
    type: "attribute",
    name: "callback",
    hosts: ["127.0.0.1", "localhost"],
    plainHttp: true,
    privateAddresses: true,
  } as const;
  await play(context, settingsOf(route([source], { ...toUrl(""), target }, { concurrency: 4 }), { graceMs: 0 }));
  for (const id of ["1", "2", "3", "4"]) source.put(id, { attributes: { callback: `${hanging.url}/` } });
  source.put("5", { attributes: { callback: `${well.url}/` } });
  await until(() => source.told.includes("acknowledged 5"), "the other host");
  assert.equal(hanging.received.length, 2);
});
