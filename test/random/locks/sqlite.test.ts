import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SqliteEngine } from "../../../src/engines/sqlite/engine.ts";
import { Seeds } from "../../kit/seeds.ts";
import { addStoreTests, type RunningStore } from "./add-store-tests.ts";

const start = async (): Promise<RunningStore> => {
  const folder = mkdtempSync(join(tmpdir(), "baton-random-"));
  const file = join(folder, "store.db");
  return {
    connect: () => SqliteEngine.open({ file, synchronous: "full" }),
    stop: async () => rmSync(folder, { recursive: true, force: true }),
  };
};

addStoreTests("locks in SQLite", start, () => new Seeds({ seeds: 40, longestMs: 4_000 }));
