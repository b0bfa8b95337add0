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
import { tables } from "./sql/tables.ts";
import { withinFunctions } from "./sql/within.ts";

/** Older ones lack functions with a body in standard SQL, and are not maintained any more. */
const OLDEST_SERVER = 140_000;

/** One more with each change of tables or functions. Versions before 4 were never released, and are not brought up to date. */
export const SCHEMA_VERSION = 4;

function everything(s: string): string {
  const channel = channelOf(s);
  return [
    tables(s),
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

/** Tables and functions, to be missed when somebody has removed one. */
export function partsOf(schema: string): readonly string[] {
  const made = everything(schema).matchAll(/CREATE (?:OR REPLACE |UNLOGGED )*(?:TABLE|FUNCTION) (\w+)\.(\w+)/g);
  return [...new Set(Array.from(made, ([, , name = ""]) => name))];
}

const PARTS = partsOf("any");

/** Where the wakes of a schema go. Channels belong to the database. */
export function channelOf(schema: string): string {
  return `baton_${schema}`;
}

/** Safe with several processes starting at once: whoever comes second waits, and finds the work done. */
export async function makeSchema(client: ClientBase, schema: string, where: string): Promise<void> {
  await assertServer(client, where);
  if (await isThere(client, schema, where)) return;
  await client.query("BEGIN");
  try {
    await client.query("SELECT pg_advisory_xact_lock($1)", [lockNumber(schema)]);
    if (!(await isThere(client, schema, where))) {
      // A schema that a role of more power has made is as good.
      const { rowCount } = await client.query("SELECT FROM pg_namespace WHERE nspname = $1", [schema]);
      if (rowCount === 0) await client.query(`CREATE SCHEMA ${schema}`);
      await client.query(`CREATE TABLE ${schema}.store (version integer NOT NULL)`);
      await client.query(`INSERT INTO ${schema}.store VALUES (${SCHEMA_VERSION})`);
      // A function may name those that come later.
      await client.query("SET LOCAL check_function_bodies = off");
      await client.query(everything(schema));
    }
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

/** Refuses what is not ours, and what is of another version. */
async function isThere(client: ClientBase, schema: string, where: string): Promise<boolean> {
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
  if (!ours) return false;
  const { rows } = await client.query<{ version: number }>(`SELECT version FROM ${schema}.store`);
  const version = rows[0]?.version ?? 0;
  if (version === SCHEMA_VERSION) return true;
  const [code, age, advice] =
    version > SCHEMA_VERSION
      ? (["STORE_TOO_NEW", "a newer", "Upgrade batonq in this application."] as const)
      : ([
          "STORE_TOO_OLD",
          "an older, unreleased",
          "Work off what it has with that version and drop the schema, or name another one.",
        ] as const);
  throw new StoreFailure(
    code,
    `The schema ${schema} at ${where} was written by ${age} version of Baton (schema ${version}; this one knows ${SCHEMA_VERSION}). ` +
      `Nothing was changed. ${advice}`,
  );
}

function lockNumber(schema: string): number {
  return createHash("sha256").update(`baton ${schema}`).digest().readUIntBE(0, 6);
}
