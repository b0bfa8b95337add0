import type { ConformanceTarget } from "../../src/conformance/index.ts";
import { openPostgresUrl } from "../../src/engines/postgres/index.ts";
import { startPostgres } from "../../servers/postgres.ts";
import { addEngineTests } from "../add-engine-tests.ts";
import { started } from "../started.ts";

const running = started(() => startPostgres());

const target: ConformanceTarget = {
  name: "postgres",
  open: () => openPostgresUrl(running().url),
  async restart() {
    await running().kill();
    await running().restart();
  },
};

addEngineTests("the PostgreSQL engine", target);
