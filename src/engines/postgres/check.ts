import type { Finding } from "../../engine/port.ts";
import type { Link, Row } from "./link.ts";
import { integer, text } from "./rows.ts";
import { partsOf, SCHEMA_VERSION } from "./schema.ts";
import { LEASED, NOW } from "./sql/functions.ts";

/** Dead rows are vacuumed away; this many more than live ones say that nobody does. */
const MANY_DEAD_ROWS = 200_000;
/** A transaction this old keeps everything that was removed since from being cleaned up. */
const OLD_TRANSACTION_S = 300;

/** What an operator should know about the server and the schema. */
export async function check(link: Link, schema: string): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  const [server = []] = await link.query(
    "baton_check_server",
    `SELECT current_setting('server_version'), current_setting('synchronous_commit'), current_setting('fsync'),
       current_setting('full_page_writes'), pg_is_in_recovery(), current_setting('autovacuum')`,
    [],
  );
  findings.push({
    severity: "ok",
    subject: "PostgreSQL",
    detail: `version ${text(server, 0)}, schema ${schema}, version ${SCHEMA_VERSION}`,
  });
  findings.push(durability(server));
  const missing = await missingParts(link, schema);
  if (missing.length > 0) {
    findings.push({
      severity: "error",
      subject: "Schema",
      detail: `of schema ${schema} something is gone: ${missing.join(", ")}`,
      advice: "Restore it from a backup. If everything in it may be forgotten, drop the schema: it is made anew.",
    });
    return findings;
  }
  if (server[5] !== "on") {
    findings.push({
      severity: "warning",
      subject: "Vacuum",
      detail: "autovacuum is off: rows that were removed stay, and everything becomes slower and larger",
      advice: "Set autovacuum = on.",
    });
  }
  const tables = await link.query(
    "baton_check_tables",
    `SELECT relname::text, n_live_tup, n_dead_tup, pg_total_relation_size(relid) FROM pg_stat_user_tables WHERE schemaname = $1 ORDER BY 4 DESC`,
    [schema],
  );
  findings.push(size(tables));
  for (const row of tables) {
    if (integer(row, 2) < MANY_DEAD_ROWS || integer(row, 2) < integer(row, 1)) continue;
    findings.push({
      severity: "warning",
      subject: "Vacuum",
      detail: `table ${text(row, 0)} has ${integer(row, 2)} dead rows and ${integer(row, 1)} live ones`,
      advice: "Look for transactions that stay open, and for replication slots that nobody reads; then VACUUM it.",
    });
  }
  const [old] = await link.query(
    "baton_check_old",
    `SELECT pid::bigint, extract(epoch FROM now() - xact_start)::bigint FROM pg_stat_activity
     WHERE datname = current_database() AND xact_start < now() - interval '${OLD_TRANSACTION_S} seconds' AND backend_type = 'client backend'
     ORDER BY xact_start LIMIT 1`,
    [],
  );
  if (old !== undefined) {
    findings.push({
      severity: "warning",
      subject: "Transactions",
      detail: `process ${integer(old, 0)} has had a transaction open for ${integer(old, 1)} s: nothing that was removed since is cleaned up`,
      advice: "End it, or set idle_in_transaction_session_timeout for those who forget.",
    });
  }
  const [expired] = await link.query(
    "baton_check_leases",
    `SELECT count(*) FILTER (WHERE k.at < ${NOW} - 1000),
       count(*) FILTER (WHERE k.id NOT IN (SELECT u.kid FROM ${schema}.timer t, unnest(t.keys) u(kid)))
     FROM ${schema}.key k WHERE k.state = ${LEASED}`,
    [],
  );
  const count = expired === undefined ? 0 : integer(expired, 0);
  if (count > 0) {
    findings.push({
      severity: "warning",
      subject: "Leases",
      detail: `${count} lease(s) ran out and nobody took them over`,
      advice: "Their workers crashed or were stopped. Start a worker; it takes the keys over at once.",
    });
  }
  const untimed = expired === undefined ? 0 : integer(expired, 1);
  if (untimed > 0) {
    findings.push({
      severity: "error",
      subject: "Leases",
      detail: `${untimed} lease(s) have no timer: if their workers die, nobody takes the keys over`,
      advice: `Tables were changed by hand, or this is a bug; please report it. INSERT INTO ${schema}.timer SELECT at, id, ARRAY[id] FROM ${schema}.key WHERE state = ${LEASED} mends it.`,
    });
  }
  return findings;
}

async function missingParts(link: Link, schema: string): Promise<readonly string[]> {
  const rows = await link.query(
    "baton_check_parts",
    `SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = to_regnamespace($1)
     UNION SELECT p.proname::text FROM pg_proc p WHERE p.pronamespace = to_regnamespace($1)`,
    [schema],
  );
  const there = new Set(rows.map((row) => text(row, 0)));
  return partsOf(schema).filter((name) => !there.has(name));
}

function durability(server: Row): Finding {
  const subject = "Durability";
  const setting = text(server, 1);
  if (server[2] !== "on" || server[3] !== "on") {
    return {
      severity: "error",
      subject,
      detail: `fsync is ${text(server, 2)}, full_page_writes ${text(server, 3)}: a crash of the machine can destroy the whole database`,
      advice: "Set both to on.",
    };
  }
  if (setting === "off") {
    return {
      severity: "warning",
      subject,
      detail:
        "synchronous_commit is off: a crash of the server can lose the last accepted items, and repeat the last fences",
      advice: "Set it to on for the role or the database of Baton, or with ?synchronous_commit=on in its URL.",
    };
  }
  return {
    severity: "ok",
    subject,
    detail: `synchronous_commit ${setting}: accepted items survive a crash and power loss`,
  };
}

function size(tables: readonly Row[]): Finding {
  const bytes = tables.reduce((sum, row) => sum + integer(row, 3), 0);
  const largest = tables.slice(0, 3).map((row) => `${text(row, 0)} ${mebibytes(integer(row, 3))}`);
  return {
    severity: "ok",
    subject: "Size",
    detail: `${mebibytes(bytes)} with indexes; largest: ${largest.join(", ")}`,
  };
}

function mebibytes(bytes: number): string {
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
