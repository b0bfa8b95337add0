import { rmSync } from "node:fs";
import { join } from "node:path";
import { newFolder } from "./place.ts";
import type { Store } from "./store.ts";

export function openFileStore(): Promise<Store> {
  return Promise.resolve({
    version: `SQLite ${process.versions["sqlite"] ?? ""}`.trim(),
    settings: "through `node:sqlite`, write-ahead log, `synchronous` as each subject says",
    async fresh() {
      const folder = newFolder("file");
      return {
        location: join(folder, "bench.db"),
        rest: () => Promise.resolve(),
        serverMemory: () => undefined,
        async drop() {
          rmSync(folder, { recursive: true, force: true });
        },
      };
    },
    stop: () => Promise.resolve(),
  });
}
