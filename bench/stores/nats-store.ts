import { rmSync } from "node:fs";
import { findNatsServer } from "../../servers/nats-binary.ts";
import { startNatsServer } from "../../servers/nats-server.ts";
import { newFolder } from "./place.ts";
import { memoryOf, signalToo } from "./server-process.ts";
import type { FreshStore, Store } from "./store.ts";

/** A server per measurement, as with Redis: neither its memory nor its files remember the one before. */
export async function openNatsStore(sync: "default" | "always"): Promise<Store> {
  const { version } = await findNatsServer();

  async function fresh(): Promise<FreshStore> {
    const folder = newFolder("nats");
    const server = await startNatsServer({ folder, sync });
    const { pid } = server;
    const forget = signalToo({ kill: () => process.kill(pid, "SIGKILL") });
    return {
      location: sync === "always" ? `${server.url}?sync=always` : server.url,
      rest: () => Promise.resolve(),
      serverMemory: () => memoryOf(pid),
      async drop() {
        // Nothing of it is wanted any more.
        await server.kill("SIGKILL");
        forget();
        rmSync(folder, { recursive: true, force: true });
      },
    };
  }

  const syncs = sync === "always" ? "`sync_interval: always`" : "`sync_interval` at its default of two minutes";
  return {
    version: `NATS ${version}`,
    settings: `one server, JetStream in files, ${syncs}`,
    fresh,
    stop: () => Promise.resolve(),
  };
}
