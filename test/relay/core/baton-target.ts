import { randomUUID } from "node:crypto";
import { after } from "node:test";
import type { SourceTarget } from "../../../src/conformance/index.ts";
import type { Baton } from "../../../src/index.ts";
import { batonSource, type Source } from "../../../src/relay/index.ts";

/** Queues of a Baton store as sources, for their conformance. */
export function batonTarget(name: string, connectOne: () => Promise<Baton>, shortestHoldMs = 1_000): SourceTarget {
  // One for all who send and look: a connection to a file is a thread.
  let connected: Promise<Baton> | undefined;
  after(async () => await (await connected)?.close());
  return {
    name,
    shortestHoldMs,
    async create(holdMs) {
      const queue = `q-${randomUUID()}`;
      connected ??= connectOne();
      const baton = await connected;
      const handles: Baton[] = [];
      return {
        async open() {
          const handle = await connectOne();
          handles.push(handle);
          const source = await batonSource({ name: queue, store: handle, queue, leaseMs: holdMs });
          // Closing the source leaves a connection that was handed in: as a process that ends, close both.
          const both: Source = {
            name: source.name,
            receive: (request) => source.receive(request),
            close: () => handle.close({ grace: 0 }),
          };
          return both;
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
