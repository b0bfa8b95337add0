import { createHash } from "node:crypto";
import type { ClientBase } from "pg";
import { StoreFailure } from "./failure.ts";
import { delayedFunctions } from "./sql/delayed.ts";
import { deleteFunctions } from "./sql/delete-queue.ts";
import { dueFunctions } from "./sql/due.ts";
import { idFunction, lineFunctions } from "./sql/line.ts";
import { operateFunctions } from "./sql/operate.ts";
import { runFunctions } from "./sql/runs.ts";
import { stepFunctions } from "./sql/step.ts";
import { submitFunctions } from "./sql/submit.ts";
import { attemptColumns, runColumns, tables } from "./sql/tables.ts";
import { withinFunctions } from "./sql/within.ts";

/** Older ones lack functions with a body in standard SQL, and are not maintained any more. */
const OLDEST_SERVER = 140_000;

/**
 * Each entry takes the tables from its index to the next version. Never change one that was released; add another. The functions are made anew
 * after them: a function that gets other arguments or another result is dropped here first, and one that processes of an older version call
 * keeps both, so that they go on.
 */
const MIGRATIONS: readonly ((schema: string) => string)[] = [tables, attemptColumns, runColumns];

function functions(s: string, channel: string): string {
  return [
    idFunction(s),
    lineFunctions(s, channel),
    delayedFunctions(s),
    dueFunctions(s),
    submitFunctions(s),
    withinFunctions(s, channel),
    runFunctions(s),
    stepFunctions(s),
    operateFunctions(s, channel),
    deleteFunctions(s),
  ].join("\n");
}

export const SCHEMA_VERSION: number = MIGRATIONS.length;

/** Tables and functions that migrations make, to be missed when somebody has removed one. */
export function partsOf(schema: string): readonly string[] {
  const text = [...MIGRATIONS.map((migration) => migration(schema)), functions(schema, channelOf(schema))].join("\n");
  const made = text.matchAll(/CREATE (?:OR REPLACE |UNLOGGED )*(?:TABLE|FUNCTION) (\w+)\.(\w+)/g);
  return [...new Set(Array.from(made, ([, , name = ""]) => name))];
}

const PARTS = partsOf("any");

/** Where the wakes of a schema go. Channels belong to the database. */
export function channelOf(schema: string): string {
  return `baton_${schema}`;
}

/** Safe with several processes starting at once: whoever comes second waits, and finds the work done. */
export async function migrate(client: ClientBase, schema: string, where: string): Promise<void> {
  await assertServer(client, where);
  if ((await versionOf(client, schema, where)) === SCHEMA_VERSION) return;
  await client.query("BEGIN");
  try {
    await client.query("SELECT pg_advisory_xact_lock($1)", [lockNumber(schema)]);
    const version = await versionOf(client, schema, where);
    if (version === 0) {
      // A schema that a role of more power has made is as good.
      const { rowCount } = await client.query("SELECT FROM pg_namespace WHERE nspname = $1", [schema]);
      if (rowCount === 0) await client.query(`CREATE SCHEMA ${schema}`);
      await client.query(`CREATE TABLE ${schema}.store (version integer NOT NULL)`);
      await client.query(`INSERT INTO ${schema}.store VALUES (0)`);
    }
    for (const migration of MIGRATIONS.slice(version)) await client.query(migration(schema));
    // A function may name those that come later.
    await client.query("SET LOCAL check_function_bodies = off");
    await client.query(functions(schema, channelOf(schema)));
    await client.query(`UPDATE ${schema}.store SET version = $1`, [SCHEMA_VERSION]);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  }
}

async function assertServer(client: ClientBase, where: string): Promise<void> {
  const { rows } = await client.query<{ number: string; name: string }>(
    "SELECT current_setting('server_version_num') AS number, current_setting('server_version') AS name",
  );
  const [server] = rows;
  if (server !== undefined && Number(server.number) >= OLDEST_SERVER) return;
  throw new StoreFailure(
    "STORE_TOO_OLD",
    `${where} runs PostgreSQL ${server?.name ?? "of an unknown version"}; Baton needs 14 or newer. Nothing was changed. Upgrade the server.`,
  );
}

/** 0: there is none. Refuses what is not ours, and what is newer than we are. */
async function versionOf(client: ClientBase, schema: string, where: string): Promise<number> {
  // Others may have a table of that name; functions with these names besides have only we.
  const found = await client.query<{ ours: boolean; other: boolean }>(
    `SELECT to_regclass($1 || '.store') IS NOT NULL AND EXISTS (
         SELECT FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = $1 AND p.proname = ANY ($2)) AS ours,
       EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1) AS other`,
    [schema, PARTS],
  );
  const { ours, other } = found.rows[0] ?? { ours: false, other: false };
  if (!ours && other) {
    throw new StoreFailure(
      "STORE_CORRUPT",
      `The schema ${schema} at ${where} has tables, and they are not Baton's. Nothing was changed. ` +
        `Name a schema that is empty, or that Baton may make, with ?schema=… in the URL or the option schema.`,
    );
  }
  if (!ours) return 0;
  const { rows } = await client.query<{ version: number }>(`SELECT version FROM ${schema}.store`);
  const version = rows[0]?.version ?? 0;
  if (version <= SCHEMA_VERSION) return version;
  throw new StoreFailure(
    "STORE_TOO_NEW",
    `The schema ${schema} at ${where} was written by a newer version of Baton (schema ${version}; this one knows ${SCHEMA_VERSION}). ` +
      "Nothing was changed. Upgrade batonq in this application.",
  );
}

function lockNumber(schema: string): number {
  return createHash("sha256").update(`baton ${schema}`).digest().readUIntBE(0, 6);
}
