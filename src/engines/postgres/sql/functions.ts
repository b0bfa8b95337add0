/**
 * Plans are made once, when tables may still be empty and a scan of all of one looks cheap; so they are told to use the indexes. Where two
 * tables meet, the statements say which is looked up in which (`LATERAL … OFFSET 0`, `= ANY`), because a table that was just emptied and
 * vacuumed would otherwise be taken for one that is always empty.
 */
export const PLANNING: Readonly<Record<string, string>> = {
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_bitmapscan: "off",
  jit: "off",
  plan_cache_mode: "force_generic_plan",
};

/** A function that is called on a connection of ours, which has these settings: to set them anew costs more than a short function does. */
export function define(signature: string, body: string): string {
  return declare(signature, "", body);
}

/** A function that runs on an application's own connection, and brings its settings along. */
export function defineForeign(signature: string, body: string): string {
  const settings = Object.entries(PLANNING).map(([name, value]) => `SET ${name} = ${value}`);
  return declare(signature, settings.join(" "), body);
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

/** A queue that a handle knows by its number was deleted. */
export const QUEUE_GONE = "BA002";

/** Within a loop over submissions: one whose id is known gets the receipt of the first, before anything else is asked about it. */
export function answerKnownId(s: string): string {
  return `IF given IS NOT NULL THEN
      SELECT * INTO had FROM ${s}.receipt r WHERE r.queue = qs[i] AND r.id = given AND (r.expires IS NULL OR r.expires > now);
      IF FOUND THEN
        RETURN QUERY SELECT i, 1, given, had.key, had.level::integer, had.submitted, NULL::text[];
        CONTINUE;
      END IF;
    END IF;`;
}
