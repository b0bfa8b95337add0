/** What AWS refuses, as the real client hears it: an HTTP server that answers with AWS's own errors. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, test, type TestContext } from "node:test";
import { BatonError } from "../../../src/index.ts";
import type { SourceMessage } from "../../../src/relay/source.ts";
import { loadSdk, SqsConnection } from "../../../src/relay/sources/sqs/sqs-client.ts";
import type { SqsSettings } from "../../../src/relay/sources/sqs/sqs-settings.ts";
import { openSqs } from "../../../src/relay/sources/sqs/sqs-source.ts";
import { now } from "./received.ts";
import { REGION, sqsSourceOf } from "./sqs-desk.ts";

type Answer = (action: string, response: ServerResponse) => void;

async function aws(t: TestContext, answer: Answer): Promise<SqsSettings> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      const action = String(request.headers["x-amz-target"]).replace("AmazonSQS.", "");
      response.setHeader("content-type", "application/x-amz-json-1.0");
      answer(action, response);
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const queue = `${endpoint}/000000000000/orders`;
  return { name: "orders", queue, region: REGION, endpoint, visibilityMs: 30_000, deadLetterQueue: undefined };
}

function refuse(response: ServerResponse, code: string, status = 400): void {
  response.writeHead(status).end(JSON.stringify({ __type: `com.amazonaws.sqs#${code}`, message: "as AWS puts it" }));
}

function reply(response: ServerResponse, value: object): void {
  response.writeHead(200).end(JSON.stringify(value));
}

/** The client checks the sum. */
function messageOf(id: string): object {
  return { MessageId: id, ReceiptHandle: id, Body: id, MD5OfBody: createHash("md5").update(id).digest("hex") };
}

describe("SQS refuses", { concurrency: 4 }, () => {
  const refusals = [
    ["ExpiredToken", "STORE_UNAVAILABLE", /credentials have expired\. Renew them/],
    ["InvalidClientTokenId", "STORE_UNAVAILABLE", /does not accept the credentials.*AWS_ACCESS_KEY_ID/],
    ["AccessDenied", "STORE_UNAVAILABLE", /lack a permission: sqs:ReceiveMessage/],
    ["RequestThrottled", "STORE_UNAVAILABLE", /asks for patience/],
    ["QueueDoesNotExist", "NOT_FOUND", /Make the queue/],
  ] as const;
  for (const [code, expected, advice] of refusals) {
    test(`${code}: the error says what to do`, async (t) => {
      const settings = await aws(t, (_, response) => refuse(response, code));
      const source = await sqsSourceOf(t, settings);
      await assert.rejects(source.receive({ max: 1, signal: now }), (error: unknown) => {
        assert.ok(error instanceof BatonError);
        assert.equal(error.code, expected);
        assert.match(error.message, /source orders/);
        assert.match(error.message, advice);
        return true;
      });
    });
  }

  test("whoever may only receive can do without the rest", async (t) => {
    const settings = await aws(t, (action, response) => {
      if (action === "ReceiveMessage") reply(response, { Messages: [messageOf("m")] });
      else refuse(response, "AccessDenied", 403);
    });
    const source = await sqsSourceOf(t, settings);
    const [found] = await source.receive({ max: 1, signal: now });
    assert.equal(found?.id, "m");
    assert.equal(source.hasDeadLetters, false, "the source has no dead letters");
    assert.equal(found.bury, undefined, "nobody says where the dead letters go");
  });

  test("one message of a batch: the others are done", async (t) => {
    const Messages = ["a", "b", "c"].map(messageOf);
    const Failed = [
      { Id: "1", Code: "ReceiptHandleIsInvalid", SenderFault: true },
      { Id: "2", Code: "InternalError", SenderFault: false },
    ];
    const settings = await aws(t, (action, response) => {
      if (action === "ReceiveMessage") reply(response, { Messages });
      else reply(response, { Successful: [{ Id: "0" }], Failed });
    });
    const found = await (await sqsSourceOf(t, settings)).receive({ max: 3, signal: now });
    const results = await Promise.allSettled(found.map((message) => message.acknowledge()));
    const codes = results.map((result) =>
      result.status === "fulfilled" ? "done" : (result.reason as BatonError).code,
    );
    assert.deepEqual(codes, ["done", "LEASE_LOST", "STORE_UNAVAILABLE"]);
    assert.deepEqual(
      found.map(({ lost }) => lost.aborted),
      [false, true, false],
    );
  });
});

describe("SQS does not answer", { concurrency: 4 }, () => {
  /** Answers receives, and swallows everything else. */
  const swallowing: Answer = (action, response) => {
    if (action === "ReceiveMessage") reply(response, { Messages: [messageOf("m")] });
    else if (action === "GetQueueAttributes") reply(response, {});
  };

  test("a request is given up, and the error says how long it was waited for", async (t) => {
    const connection = new SqsConnection(await loadSdk(), await aws(t, () => undefined));
    t.after(() => connection.close());
    const question = new connection.sdk.GetQueueUrlCommand({ QueueName: "orders" });
    await assert.rejects(
      connection.ask((options) => connection.client.send(question, options), { withinMs: 200 }),
      /no answer came within 0\.2 s/,
    );
  });

  for (const [what, tell] of [
    ["a delete", (message: SourceMessage) => message.acknowledge()],
    ["an extension", (message: SourceMessage) => message.extend()],
  ] as const) {
    test(`${what} that was swallowed is an error after a while, and can be repeated`, async (t) => {
      const source = await sqsSourceOf(t, await aws(t, swallowing));
      const [found] = await source.receive({ max: 1, signal: now });
      assert.ok(found);
      await assert.rejects(tell(found), { code: "STORE_UNAVAILABLE" });
    });
  }

  test("a source whose every request is swallowed can be closed", async (t) => {
    const settings = await aws(t, () => undefined);
    const source = await openSqs({ ...settings, queue: "orders" });
    const watch = new AbortController();
    const received = assert.rejects(source.receive({ max: 1, signal: watch.signal }), { code: "CLOSED" });
    const tried = assert.rejects(source.receive({ max: 1, signal: now }), { code: "STORE_UNAVAILABLE" });
    await source.close();
    await Promise.all([received, tried]);
  });
});
