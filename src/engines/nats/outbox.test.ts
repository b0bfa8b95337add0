import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { NatsConnection } from "@nats-io/transport-node";
import { ManualClock } from "../../../test/manual-clock.ts";
import type { Clock } from "../../domain/clock.ts";
import { Outbox } from "./outbox.ts";

const HEADERS = "NATS/1.0\r\nNats-Rollup: sub\r\n\r\n";

/** What a connection shows of itself, with a client's writer or without. */
class Stub {
  readonly info = { max_payload: 100_000 };
  readonly written: Uint8Array[] = [];
  readonly published: { subject: string; data: unknown; reply: string | undefined; headers: string | undefined }[] = [];
  flushes = 0;
  closed = false;

  isClosed(): boolean {
    return this.closed;
  }

  publish(subject: string, data: unknown, options: { reply?: string; headers?: { encode(): Uint8Array } }): void {
    const headers = options.headers === undefined ? undefined : Buffer.from(options.headers.encode()).toString();
    this.published.push({ subject, data, reply: options.reply, headers });
  }

  get text(): string {
    return Buffer.concat(this.written).toString("utf8");
  }
}

class WritingStub extends Stub {
  readonly protocol = {
    outMsgs: 0,
    outBytes: 0,
    sendCommand: (bytes: Uint8Array): void => void this.written.push(bytes),
    flushPending: (): void => {
      this.flushes += 1;
    },
  };
}

function outboxOf(stub: Stub, clock: Clock = new ManualClock()): Outbox {
  return new Outbox(stub as unknown as NatsConnection, clock);
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe("what is published", () => {
  test("goes out at once when nothing was sent for a while, and what follows in the same turn together", async () => {
    const stub = new WritingStub();
    const clock = new ManualClock();
    const outbox = outboxOf(stub, clock);
    outbox.add("a", "1");
    assert.equal(stub.text, "PUB a 1\r\n1\r\n");
    outbox.add("a", "2");
    outbox.add("a", "3");
    assert.equal(stub.written.length, 1);
    await turn();
    assert.equal(stub.written.length, 2);
    await clock.pass(1);
    outbox.add("a", "4");
    assert.equal(stub.written.length, 2);
    await turn();
    await clock.pass(3);
    outbox.add("a", "5");
    assert.equal(stub.written.length, 4);
    assert.equal(stub.text, ["1", "2", "3", "4", "5"].map((data) => `PUB a 1\r\n${data}\r\n`).join(""));
  });

  test("goes out together at the end of the turn, as the protocol has it", async () => {
    const stub = new WritingStub();
    const outbox = outboxOf(stub);
    outbox.add("before", "");
    stub.written.splice(0);
    stub.protocol.outMsgs = 0;
    stub.protocol.outBytes = 0;
    outbox.add("a.b", "+ACK");
    outbox.add("a.c", "häuser €", { reply: "r.1" });
    outbox.add("a.d", new Uint8Array([0, 255]), { reply: "r.2", headers: HEADERS });
    outbox.add("a.e", "", { headers: HEADERS });
    assert.equal(stub.written.length, 0);
    await turn();
    assert.equal(stub.written.length, 1);
    const expected = Buffer.concat([
      Buffer.from("PUB a.b 4\r\n+ACK\r\nPUB a.c r.1 11\r\nhäuser €\r\n"),
      Buffer.from(`HPUB a.d r.2 ${HEADERS.length} ${HEADERS.length + 2}\r\n${HEADERS}`),
      Buffer.from([0, 255, 13, 10]),
      Buffer.from(`HPUB a.e ${HEADERS.length} ${HEADERS.length}\r\n${HEADERS}\r\n`),
    ]);
    assert.deepEqual(Buffer.concat(stub.written), expected);
    assert.equal(stub.protocol.outMsgs, 4);
    assert.equal(stub.protocol.outBytes, expected.length);
  });

  test("goes out earlier when it is much, and what went out is never written over", async () => {
    const stub = new WritingStub();
    const outbox = outboxOf(stub);
    let expected = "";
    for (let count = 0; count < 100; count += 1) {
      const data = String.fromCharCode(97 + (count % 26)).repeat(7_000 + count);
      outbox.add("a", data);
      expected += `PUB a ${data.length}\r\n${data}\r\n`;
    }
    assert.ok(stub.written.length > 10 && stub.written.length < 100, String(stub.written.length));
    assert.equal(stub.flushes, stub.written.length);
    await turn();
    outbox.add("b", "x".repeat(90_000));
    outbox.flush();
    expected += `PUB b 90000\r\n${"x".repeat(90_000)}\r\n`;
    assert.ok(stub.text === expected);
  });

  test("half of a character has as many bytes as were announced", async () => {
    const stub = new WritingStub();
    outboxOf(stub).add("a", "\ud800");
    await turn();
    assert.equal(stub.text, "PUB a 3\r\n\ufffd\r\n");
  });

  test("is refused when it is too large for the server, or the connection is closed", () => {
    const stub = new WritingStub();
    const outbox = outboxOf(stub);
    assert.throws(() => outbox.add("a", "x".repeat(100_001)), { code: "INVALID_INPUT" });
    stub.closed = true;
    assert.throws(() => outbox.add("a", "x"), { code: "CLOSED" });
  });

  test("goes through the client's own face when that is all there is", () => {
    const stub = new Stub();
    const outbox = outboxOf(stub);
    outbox.add("a", "one", { reply: "r", headers: HEADERS });
    outbox.add("b", "two");
    outbox.flush();
    assert.deepEqual(stub.published, [
      { subject: "a", data: "one", reply: "r", headers: HEADERS },
      { subject: "b", data: "two", reply: undefined, headers: undefined },
    ]);
  });
});
