/** Baton queues as sources of the relay: on a memory store, and on a file that several handles share. */
import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import type { SourceTarget } from "../../../src/conformance/index.ts";
import { systemClock } from "../../../src/domain/clock.ts";
import { MemoryStore } from "../../../src/engines/memory/index.ts";
import { type Baton, connect } from "../../../src/index.ts";
import { batonSource } from "../../../src/relay/index.ts";
import { addSourceTests } from "./add-source-tests.ts";

function target(name: string, connectOne: () => Promise<Baton>): SourceTarget {
  // One for all who send and look: a connection to a file is a thread.
  const connected = connectOne();
  after(async () => await (await connected).close());
  return {
    name,
    async create(holdMs) {
      const queue = `q-${randomUUID()}`;
      const baton = await connected;
      const handles: Baton[] = [];
      return {
        async open() {
          const handle = await connectOne();
          handles.push(handle);
          const source = await batonSource({ name: queue, store: handle, queue, leaseMs: holdMs });
          // Closing the source leaves a connection that was handed in: as a process that ends, close both.
          return { ...bound(source), close: () => handle.close({ grace: 0 }) };
        },
        send: async ({ data, key = "key", attributes }) => {
          const headers = attributes === undefined ? {} : { headers: attributes };
          await baton.queue(queue).submit(key, data, { type: "text/plain", ...headers });
        },
        buried: async () => (await baton.queue(queue).dead()).map(({ payload }) => String(payload.body)),
        dispose: async () => {
          await Promise.all(handles.map((handle) => handle.close({ grace: 0 })));
        },
      };
    },
  };
}

function bound(source: Awaited<ReturnType<typeof batonSource>>): Awaited<ReturnType<typeof batonSource>> {
  return { name: source.name, receive: (request) => source.receive(request), close: () => source.close() };
}

const memory = new MemoryStore({ clock: systemClock });
addSourceTests(
  "a queue in memory",
  target("memory", () => connect(memory.connect())),
);

const folder = await mkdtemp(join(tmpdir(), "baton-relay-"));
after(() => rm(folder, { recursive: true, force: true }));
addSourceTests(
  "a queue in SQLite",
  target("sqlite", () => connect(`sqlite:${join(folder, "work.db")}?synchronous=off`)),
);
