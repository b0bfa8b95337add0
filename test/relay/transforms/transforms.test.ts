import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { gzipSync } from "node:zlib";
import { guessedType } from "../../../src/relay/media-type.ts";
import type { Content, Transform } from "../../../src/relay/transform.ts";
import { openCloudEvents } from "../../../src/relay/transforms/cloudevents.ts";
import { decodeBase64, unpackGzip } from "../../../src/relay/transforms/decode.ts";
import { atPointer, isPointer } from "../../../src/relay/transforms/json-pointer.ts";
import { openModule } from "../../../src/relay/transforms/module.ts";
import { pick } from "../../../src/relay/transforms/pick.ts";
import { unwrapDaprAws, unwrapSns } from "../../../src/relay/transforms/sns.ts";
import { openSqsDesk, REGION, sqsSourceOf } from "../sources/sqs-desk.ts";
import { receiveOne } from "../sources/received.ts";

function content(data: unknown, attributes: Record<string, string> = {}): Content {
  const bytes = data instanceof Uint8Array ? data : Buffer.from(typeof data === "string" ? data : JSON.stringify(data));
  return { data: bytes, contentType: undefined, attributes };
}

async function apply(transform: Transform, given: Content): Promise<Content & { readonly text: string }> {
  const result = await transform.apply(given);
  return { ...result, text: new TextDecoder().decode(result.data) };
}

async function isBad(transform: Transform, given: Content, message: RegExp): Promise<void> {
  await assert.rejects(async () => await transform.apply(given), { code: "FATAL", message });
}

const ENVELOPE = {
  Type: "Notification",
  MessageId: "m1",
  TopicArn: "arn:aws:sns:us-west-2:000000000000:orders",
  Message: '{"a":1}',
  Timestamp: "2026-01-01T00:00:00.000Z",
};
const EVENT = {
  specversion: "1.0",
  id: "e1",
  type: "com.example.order",
  source: "/orders",
  datacontenttype: "application/json",
  data: { a: 1 },
};

test("JSON without a media type is known by its form; a bare number or text is not called JSON", async () => {
  const bytes = (text: string): Uint8Array => Buffer.from(text);
  for (const json of ['{"a":1}', " \n[1, 2]"]) assert.equal(guessedType(bytes(json)), "application/json");
  for (const other of ["", "7", '"a"', "null", "{nonsense", "hello", "[1"])
    assert.equal(guessedType(bytes(other)), undefined);
  const encoded = await apply(decodeBase64, { ...content("eyJhIjoxfQ=="), contentType: undefined });
  assert.equal(encoded.contentType, "application/json");
  const named = await apply(decodeBase64, { ...content("eyJhIjoxfQ=="), contentType: "text/plain" });
  assert.equal(named.contentType, "text/plain");
});

describe("sns", () => {
  test("unwraps what SNS itself delivers to a queue", async (t) => {
    await using desk = await openSqsDesk();
    const settings = desk.queue();
    desk.server.createTopic("orders", { region: REGION });
    desk.server.subscribe({ topic: "orders", queue: settings.queue, region: REGION });
    const messageAttributes = { colour: { DataType: "String", StringValue: "red" } };
    desk.server.publish("orders", "hello", { subject: "greeting", region: REGION, messageAttributes });
    const message = await receiveOne(await sqsSourceOf(t, settings));
    const found = await apply(unwrapSns, message);
    assert.equal(found.text, "hello");
    assert.equal(found.attributes["colour"], "red");
    assert.equal(found.attributes["AWS.SNS.Subject"], "greeting");
    assert.match(found.attributes["AWS.SNS.TopicArn"] ?? "", /:orders$/);
    assert.equal((await apply(unwrapDaprAws, message)).text, "hello");
  });

  test("refuses what is not an envelope, or has no message in it", async () => {
    await isBad(unwrapSns, content("hello"), /sns: the message is not JSON/);
    await isBad(unwrapSns, content([1]), /not a JSON object/);
    await isBad(unwrapSns, content({ ...ENVELOPE, Message: 1, TopicArn: undefined }), /no text in TopicArn, Message/);
    await isBad(unwrapSns, content({ ...ENVELOPE, Type: "SubscriptionConfirmation" }), /not a Notification/);
  });
});

describe("dapr_aws", () => {
  test("leaves the CloudEvent as Dapr published it", async () => {
    const message = JSON.stringify(EVENT);
    const found = await apply(unwrapDaprAws, content({ ...ENVELOPE, Message: message }));
    assert.equal(found.text, message);
    assert.equal(found.contentType, "application/cloudevents+json");
  });

  test("wants nothing but a message", async () => {
    const found = await apply(unwrapDaprAws, content({ Message: "{}" }));
    assert.deepEqual([found.text, found.contentType], ["{}", "application/json"]);
    await isBad(unwrapDaprAws, content({}), /no text in Message/);
  });
});

describe("cloudevents", () => {
  test("takes an event apart", async () => {
    const found = await apply(openCloudEvents(), content(EVENT, { kept: "yes" }));
    assert.equal(found.text, '{"a":1}');
    assert.equal(found.contentType, "application/json");
    assert.equal(found.attributes["ce-type"], "com.example.order");
    assert.equal(found.attributes["kept"], "yes");
  });

  test("gives bytes back as bytes, and texts as texts", async () => {
    const transform = openCloudEvents();
    const binary = { ...EVENT, data: undefined, data_base64: "AAEC", datacontenttype: "application/octet-stream" };
    assert.deepEqual([...(await apply(transform, content(binary))).data], [0, 1, 2]);
    const text = { ...EVENT, data: "hello", datacontenttype: "text/plain" };
    assert.deepEqual((await apply(transform, content(text))).text, "hello");
  });

  test("refuses what is not one", async () => {
    await isBad(openCloudEvents(), content({ a: 1 }), /not a valid CloudEvent/);
    await isBad(openCloudEvents(), content("hello"), /not JSON/);
  });
});

describe("base64 and gzip", () => {
  test("base64 in either alphabet, with or without padding, in lines", async () => {
    for (const text of ["Pz8/Pg==", "Pz8_Pg", "Pz8/\nPg==\n"]) {
      assert.equal((await apply(decodeBase64, content(text))).text, "???>");
    }
    for (const text of ["a", "a!b=", "Zm9v=Zm9v"]) await isBad(decodeBase64, content(text), /not base64/);
  });

  test("gzip up to its limit, and no bomb beyond it", async () => {
    assert.equal((await apply(unpackGzip(100), content(gzipSync("hello")))).text, "hello");
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    assert.ok(bomb.length < 60_000);
    await isBad(unpackGzip(1_000_000), content(bomb), /more than 1000000 bytes/);
    await isBad(unpackGzip(100), content("hello"), /not gzip/);
    await isBad(unpackGzip(100), content(gzipSync("hello").subarray(0, 15)), /damaged/);
  });
});

describe("pick", () => {
  test("gives a text as it is and everything else as JSON", async () => {
    const given = content({ a: { "b/c": ["x", { y: 1 }] } });
    assert.equal((await apply(pick("/a/b~1c/0"), given)).text, "x");
    const found = await apply(pick("/a/b~1c/1"), given);
    assert.deepEqual([found.text, found.contentType], ['{"y":1}', "application/json"]);
    await isBad(pick("/a/missing"), given, /nothing at \/a\/missing/);
  });

  test("does not reach into what JSON does not have", () => {
    for (const pointer of ["/constructor", "/__proto__", "/0/length", "/length"]) {
      assert.equal(atPointer([["x"]], pointer), undefined);
      assert.equal(atPointer({}, pointer), undefined);
    }
    assert.deepEqual(["", "/", "/a~1b", "a", "/a~2", "/~"].map(isPointer), [true, true, true, false, false, false]);
  });
});

describe("a module of one's own", () => {
  const write = (t: TestContext, code: string): string => {
    const folder = mkdtempSync(join(tmpdir(), "baton-transform-"));
    t.after(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "own.mjs"), code);
    return folder;
  };

  test("may return a text, bytes or content", async (t) => {
    const folder = write(
      t,
      `export default async ({ data, attributes }) => {
        const text = new TextDecoder().decode(data);
        if (text === "bytes") return Uint8Array.of(1);
        if (text === "content") return { data: "new", contentType: "text/x", attributes: { ...attributes, b: "2" } };
        return text.toUpperCase();
      };`,
    );
    const transform = await openModule("./own.mjs", folder);
    assert.equal((await apply(transform, content("hello"))).text, "HELLO");
    assert.deepEqual([...(await apply(transform, content("bytes"))).data], [1]);
    const found = await apply(transform, content("content", { a: "1" }));
    assert.deepEqual([found.text, found.contentType, found.attributes], ["new", "text/x", { a: "1", b: "2" }]);
  });

  test("that throws, or returns something else, means bad data", async (t) => {
    const folder = write(
      t,
      `export default ({ data }) => { if (data.length > 3) throw new Error("too long"); return 7; };`,
    );
    const transform = await openModule("own.mjs", folder);
    await isBad(transform, content("hello"), /own\.mjs: too long/);
    await isBad(transform, content("abc"), /own\.mjs: it returned 7/);
  });

  test("that cannot be loaded, or exports no function, is refused before anything runs", async (t) => {
    const folder = write(t, "export const other = 1;");
    await assert.rejects(openModule("own.mjs", folder), { code: "INVALID_INPUT", message: /default export/ });
    await assert.rejects(openModule("missing.mjs", folder), { code: "INVALID_INPUT", message: /can be loaded/ });
  });
});
