/**
 * How a function is declared here. The settings belong to it, not to the session, because it may run on an application's own connection.
 * Plans are made once, when tables may still be empty and a scan of all of one looks cheap; so they are told to use the indexes.
 */
export function define(signature: string, body: string): string {
  return `
CREATE OR REPLACE FUNCTION ${signature}
LANGUAGE plpgsql
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
SET jit = off SET plan_cache_mode = force_generic_plan
AS $baton$
${body}
$baton$;
`;
}

/** The states of a key; the machine stands at the top of `src/engines/sqlite/key-row.ts`. */
export const IDLE = 0;
export const READY = 1;
export const LEASED = 2;
export const BLOCKED = 3;

/** Milliseconds by the server's clock, as it is now and not as it was when the transaction began. */
export const NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/** Levels are at most sixteen, and a lane is counted for each: the first that has an item is the most urgent. */
export function firstLane(lane: string): string {
  const cases = Array.from({ length: 16 }, (_, level) => `WHEN ${lane}[${level + 1}] > 0 THEN ${level}`);
  return `(CASE ${cases.join(" ")} END)`;
}
