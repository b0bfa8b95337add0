import { Client } from "pg";
import { startPostgres } from "../../servers/postgres.ts";
import { openPostgresUrl } from "../../src/engines/postgres/index.ts";
import { addAheadTests } from "../ahead-suite.ts";
import { started } from "../started.ts";
import { PostgresDesk } from "./desk.ts";

const common = started(() => startPostgres());

addAheadTests(async (context) => {
  const { url } = await PostgresDesk.withDatabase(context, common());
  // Over a connection that is there already: what is handed out ahead is not kept for long.
  const watcher = new Client(url);
  await watcher.connect();
  context.after(() => watcher.end());
  return {
    engine: await openPostgresUrl(url),
    other: await openPostgresUrl(url),
    leased: async () => {
      const { rows } = await watcher.query<{ n: number }>(
        "SELECT count(*)::integer AS n FROM baton.key WHERE state = 2",
      );
      return rows[0]?.n ?? 0;
    },
  };
});
