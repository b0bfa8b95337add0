import { rmSync } from "node:fs";
import { connect } from "node:net";
import { findRedis } from "./find-redis.ts";
import { newFolder } from "./place.ts";
import { freePort, ServerProcess } from "./server-process.ts";
import type { FreshStore, Store } from "./store.ts";

/** A server per measurement: it starts in a moment, and neither its memory nor its log remembers the one before. */
export async function openRedisStore(appendfsync: "everysec" | "always"): Promise<Store> {
  const { program, environment, version } = await findRedis();

  async function fresh(): Promise<FreshStore> {
    const folder = newFolder("redis");
    const port = await freePort();
    const settings = {
      bind: "127.0.0.1",
      port: String(port),
      dir: folder,
      // Durability by the log alone, as BullMQ's guide for production has it.
      appendonly: "yes",
      appendfsync,
      save: "",
      // A queue must not lose keys to eviction: BullMQ warns about anything else.
      "maxmemory-policy": "noeviction",
    };
    const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
    const server = new ServerProcess(program, args, { env: environment });
    await server.until(() => answersPing(port));
    return {
      location: `redis://127.0.0.1:${port}`,
      rest: () => Promise.resolve(),
      serverMemory: () => server.memory(),
      async drop() {
        // Nothing of it is wanted any more.
        await server.stop("SIGKILL");
        rmSync(folder, { recursive: true, force: true });
      },
    };
  }

  const settings = `\`appendonly yes\`, \`appendfsync ${appendfsync}\`, no snapshots, \`maxmemory-policy noeviction\``;
  return { version: `Redis ${version}`, settings, fresh, stop: () => Promise.resolve() };
}

function answersPing(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.write("PING\r\n"));
    socket.once("data", (data) => {
      socket.destroy();
      resolve(data.toString().startsWith("+PONG"));
    });
    socket.once("error", () => resolve(false));
  });
}
