import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import type { ConformanceTarget } from "../src/conformance/index.ts";
import { sqliteEngine } from "../src/engines/sqlite/index.ts";
import { addEngineTests } from "./add-engine-tests.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-conformance-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const target: ConformanceTarget = {
  name: "sqlite",
  open: () => sqliteEngine({ file: join(folder, "store.db") }),
  // The suite has closed every handle: the log was written back, and the file is all that is left of the store.
  restart: async () => undefined,
};

addEngineTests("the SQLite engine", target);
