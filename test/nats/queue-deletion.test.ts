/** The deletion of a queue that is cut off at any of its writes, or goes on while others use the store. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { connect as connectNats } from "@nats-io/transport-node";
import { wireOf } from "../../src/engines/nats/connection.ts";
import { NatsEngine } from "../../src/engines/nats/engine.ts";
import { openNatsUrl } from "../../src/engines/nats/index.ts";
import type { Wire } from "../../src/engines/nats/wire.ts";
import type { Engine } from "../../src/engine/port.ts";
import { BatonError } from "../../src/index.ts";
import { claim, entry } from "../cars.ts";
import { NatsDesk, streamInfo, streamNames } from "./desk.ts";

const TIMEOUT = { timeout: 120_000 };
const PATIENCE_MS = 30_000;

interface Stopped {
  /** As if its process were halted: from the write on that was named, nothing reaches the server. */
  readonly engine: NatsEngine;
  /** Resolves when it has come to that write. */
  readonly stopped: Promise<void>;
  /** What it could not send is lost, and what follows is sent. */
  goOn(): void;
}

/** From the first message that `isIt` on, nothing comes through. */
async function stoppedAt(url: string, isIt: (subject: string, data: string) => boolean): Promise<Stopped> {
  const wire = wireOf(await connectNats({ servers: [url] }), true);
  const { promise: stopped, resolve } = Promise.withResolvers<void>();
  let state: "before" | "stopped" | "goes on" = "before";
  const halted: Wire = {
    get server() {
      return wire.server;
    },
    publish: (subject, data, options) => {
      const text = typeof data === "string" ? data : Buffer.from(data).toString();
      if (state === "before" && isIt(subject, text)) {
        state = "stopped";
        resolve();
      }
      if (state !== "stopped") wire.publish(subject, data, options);
    },
    subscribe: (subject, receive) => wire.subscribe(subject, receive),
    watch: (listener) => wire.watch(listener),
    close: () => wire.close(),
  };
  return {
    engine: new NatsEngine({ wire: halted, random: Math.random }),
    stopped,
    goOn: () => {
      state = "goes on";
    },
  };
}

/** Submits, and declares the queue anew if it was deleted, as the client does. */
async function submitted(engine: Engine, key: string, id: string): Promise<boolean> {
  for (;;) {
    try {
      const [result] = await engine.submit([{ ...entry, key, id, keepMs: 3_600_000 }]);
      assert.ok(result !== undefined);
      if (result.ok) return result.accepted.duplicate;
      if (result.error.code !== "QUEUE_MISSING") throw result.error;
    } catch (error) {
      if (!(error instanceof BatonError) || error.code !== "QUEUE_MISSING") throw error;
    }
    await engine.declare({ queue: "cars" });
  }
}

async function ran(engine: Engine): Promise<{ readonly id: string; readonly fence: number }> {
  const [grant] = await engine.claim({ ...claim, signal: AbortSignal.timeout(PATIENCE_MS) });
  assert.ok(grant !== undefined, "Work that was accepted is handed out");
  assert.deepEqual(await engine.settle([{ lease: grant.lease, ending: { type: "done" } }]), ["settled"]);
  return { id: grant.item.id, fence: grant.lease.fence };
}

async function errorsOf(engine: Engine): Promise<readonly unknown[]> {
  return (await engine.check()).filter(({ severity }) => severity === "error");
}

const writes = (subject: string): boolean => subject.endsWith(".queue.cars");
const STOPS: readonly {
  readonly what: string;
  readonly isIt: (subject: string, data: string) => boolean;
  readonly isDeleted: boolean;
}[] = [
  { what: "it says that it closes the queue", isIt: writes, isDeleted: false },
  { what: "it closes the stream", isIt: (subject) => subject.includes("STREAM.UPDATE.baton-cars"), isDeleted: false },
  {
    what: "it marks the queue",
    isIt: (subject, data) => writes(subject) && data.includes(`"deleted"`),
    isDeleted: false,
  },
  { what: "it forgets what it knew", isIt: (subject) => subject.includes("STREAM.PURGE.baton"), isDeleted: true },
  { what: "it deletes the stream", isIt: (subject) => subject.includes("STREAM.DELETE.baton-cars"), isDeleted: true },
  {
    what: "it deletes the consumer",
    isIt: (subject) => subject.includes("CONSUMER.DELETE.baton.due"),
    isDeleted: true,
  },
  { what: "it removes the record", isIt: (subject) => subject.includes("STREAM.MSG.DELETE.baton"), isDeleted: true },
];

async function begin(
  context: TestContext,
): Promise<{ readonly url: string; readonly port: number; open: () => Promise<Engine> }> {
  const { server } = await NatsDesk.withServer(context);
  const open = async (): Promise<Engine> => {
    const engine = await openNatsUrl(server.url);
    context.after(() => engine.close());
    return engine;
  };
  return { url: server.url, port: server.port, open };
}

// They wait for a deletion that nobody goes on with: side by side.
describe("the deletion of a queue", { ...TIMEOUT, concurrency: 7 }, () => {
  for (const { what, isIt, isDeleted } of STOPS) {
    describe(`that stops before ${what}`, TIMEOUT, () => {
      test("keeps nobody from looking, and loses nothing, also when it goes on late", async (context) => {
        const { url, open } = await begin(context);
        const other = await open();
        await other.declare({ queue: "cars" });
        await other.declare({ queue: "beside" });
        assert.equal(await submitted(other, "car1", "before"), false);
        const before = await ran(other);
        const deleter = await stoppedAt(url, isIt);
        const deleting = deleter.engine.deleteQueue({ queue: "cars", force: false }).catch((error: unknown) => error);
        await deleter.stopped;
        const stranger = await open();
        const listed = (await stranger.queues({})).map(({ queue }) => queue).toSorted();
        assert.deepEqual(listed, isDeleted ? ["beside"] : ["beside", "cars"]);
        assert.deepEqual(await errorsOf(stranger), []);
        await other.keys({ queue: "cars", limit: 10 }).catch((error: unknown) => {
          assert.ok(error instanceof BatonError && error.code === "QUEUE_MISSING", String(error));
        });
        assert.equal(await submitted(other, "car1", "before"), !isDeleted, "Whether the id of before is known");
        await submitted(other, "car2", "after");
        deleter.goOn();
        await submitted(other, "car3", "late");
        await deleting;
        await submitted(other, "car4", "last");
        const ids = ["after", "last", "late", ...(isDeleted ? ["before"] : [])].toSorted();
        const done = await Promise.all(ids.map(() => ran(other)));
        assert.deepEqual(done.map(({ id }) => id).toSorted(), ids);
        for (const { fence } of done) assert.ok(fence > before.fence, `fence ${fence} after ${before.fence}`);
        assert.deepEqual(await errorsOf(stranger), []);
        await deleter.engine.close();
      });

      test("is brought to its end by the next one", async (context) => {
        const { url, port, open } = await begin(context);
        const other = await open();
        await other.declare({ queue: "cars" });
        await submitted(other, "car1", "before");
        await ran(other);
        const deleter = await stoppedAt(url, isIt);
        const deleting = deleter.engine.deleteQueue({ queue: "cars", force: false }).catch((error: unknown) => error);
        await deleter.stopped;
        const stranger = await open();
        assert.equal(await stranger.deleteQueue({ queue: "cars", force: false }), !isDeleted);
        assert.deepEqual(await stranger.queues({}), []);
        assert.deepEqual(await streamNames(port), ["baton"]);
        assert.equal((await streamInfo(port, "baton")).state?.messages, 0);
        deleter.goOn();
        await deleting;
        assert.deepEqual(await stranger.queues({}), []);
        await deleter.engine.close();
      });
    });
  }
});
