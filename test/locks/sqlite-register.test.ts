import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe } from "node:test";
import { SqliteEngine } from "../../src/engines/sqlite/engine.ts";
import { testRegister } from "./register-contract.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-register-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const open = new Set<SqliteEngine>();

describe("the register of SQLite", () => {
  testRegister({
    async open(context) {
      const engine = await SqliteEngine.open({ file: join(folder, "store.db"), synchronous: "normal" });
      open.add(engine);
      context.after(async () => {
        open.delete(engine);
        await engine.close();
      });
      return engine.register;
    },
    // Whoever comes later finds the file.
    async restart() {
      await Promise.all(Array.from(open, (engine) => engine.close()));
      open.clear();
    },
    outlived: false,
    lateMs: 1_000,
  });
});
