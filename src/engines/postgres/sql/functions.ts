/**
 * A function that a client calls. The settings belong to it, not to the session, because it may run on an application's own connection.
 * Plans are made once, when tables may still be empty and a scan of all of one looks cheap; so they are told to use the indexes. Where two
 * tables meet, the statements say which is looked up in which (`LATERAL … OFFSET 0`, `= ANY`), because a table that was just emptied and
 * vacuumed would otherwise be taken for one that is always empty.
 */
export function define(signature: string, body: string): string {
  return declare(
    signature,
    `SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET enable_bitmapscan = off
SET jit = off SET plan_cache_mode = force_generic_plan`,
    body,
  );
}

/** A function that only others of ours call, under their settings: to set them costs more than most of these do. */
export function defineInner(signature: string, body: string): string {
  return declare(signature, "", body);
}

function declare(signature: string, settings: string, body: string): string {
  return `
CREATE OR REPLACE FUNCTION ${signature}
LANGUAGE plpgsql ${settings}
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
