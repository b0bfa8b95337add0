/** SQS keeps what every source promises. */
import { after, before, describe } from "node:test";
import type { SourceQueue, SourceTarget } from "../../../src/conformance/index.ts";
import { openSqs } from "../../../src/relay/sources/sqs/sqs-source.ts";
import { addSourceTests } from "../core/add-source-tests.ts";
import { openSqsDesk, type SqsDesk } from "./sqs-desk.ts";

let desk: SqsDesk & AsyncDisposable;
before(async () => {
  desk = await openSqsDesk();
});
after(() => desk[Symbol.asyncDispose]());

const uncount = "SQS counts every receive";

describe("SQS", { concurrency: 2 }, () => {
  addSourceTests("a standard queue", {
    ...target(false),
    cannot: { keys: "a standard queue keeps no order", uncount },
  });
  addSourceTests("a FIFO queue", { ...target(true), cannot: { uncount } });
});

function target(fifo: boolean): SourceTarget {
  // The hold is long enough for a machine with much else to do.
  return {
    name: fifo ? "sqs-fifo" : "sqs",
    shortestHoldMs: 4_000,
    skip: {
      "a message arrives as it was sent": "the emulator refuses emoji, which SQS takes; another test sends the rest",
    },
    create: (holdMs) => Promise.resolve(queue(fifo, holdMs)),
  };
}

function queue(fifo: boolean, holdMs: number): SourceQueue {
  const dead = desk.queue({ fifo });
  const settings = { ...desk.queue({ fifo }), visibilityMs: holdMs, deadLetterQueue: dead.queue };
  return {
    open: () => openSqs(settings),
    send: ({ data, key, attributes = {} }) => {
      const messageAttributes = Object.fromEntries(
        Object.entries(attributes).map(([name, value]) => [name, { DataType: "String", StringValue: value }] as const),
      );
      desk.send(settings.queue, data, { messageAttributes, ...(fifo ? { messageGroupId: key ?? "none" } : {}) });
      return Promise.resolve();
    },
    buried: () => Promise.resolve((desk.server.inspectQueue(dead.queue)?.messages.ready ?? []).map(({ body }) => body)),
    dispose: () => {
      desk.server.deleteQueue(settings.queue);
      desk.server.deleteQueue(dead.queue);
      return Promise.resolve();
    },
  };
}
