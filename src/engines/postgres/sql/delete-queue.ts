import { define, defineForeign, LEASED, QUEUE_GONE } from "./functions.ts";

/**
 * Deleting a queue. Whoever accepts an item, or makes a lease, counts it in a row of `counter`, which is locked until the commit: so those rows
 * are locked first, and whoever comes later finds none and no queue. What is not counted (holds, pauses, items within a transaction of the
 * application) locks the row of the queue (`keep_queues`).
 */
export function deleteFunctions(s: string): string {
  return [
    defineForeign(
      `${s}.keep_queues(qs integer[]) RETURNS void`,
      `
DECLARE q integer;
BEGIN
  FOREACH q IN ARRAY qs LOOP
    PERFORM 1 FROM ${s}.queue z WHERE z.id = q FOR KEY SHARE;
    IF NOT FOUND THEN RAISE EXCEPTION 'The queue was deleted.' USING ERRCODE = '${QUEUE_GONE}', DETAIL = q; END IF;
  END LOOP;
END`,
    ),

    // Nothing: there is no such queue. Otherwise its number, whether it is deleted, and what it has or had in it.
    define(
      `${s}.delete_queue(me bigint, the_name text, forced boolean, patience text) RETURNS TABLE (q integer, deleted boolean, waiting bigint, leased bigint, dead bigint)`,
      `
#variable_conflict use_column
DECLARE kids bigint[];
BEGIN
  -- A transaction of the application that has submitted to the queue may last.
  PERFORM set_config('lock_timeout', patience, true);
  SELECT z.id INTO q FROM ${s}.queue z WHERE z.name = the_name FOR UPDATE;
  IF NOT FOUND THEN RETURN; END IF;
  PERFORM set_config('lock_timeout', '0', true);
  PERFORM 1 FROM (SELECT c.shard FROM ${s}.counter c WHERE c.queue = q ORDER BY c.shard FOR UPDATE) locked;
  SELECT coalesce(sum(c.total), 0), coalesce(sum(c.dead), 0) INTO waiting, dead FROM ${s}.counter c WHERE c.queue = q;
  waiting := waiting + (SELECT count(*) FROM ${s}.delayed d WHERE d.queue = q AND NOT d.counted);
  leased := (SELECT count(*) FROM ${s}.key k WHERE k.queue = q AND k.state = ${LEASED});
  deleted := forced OR waiting + leased + dead = 0;
  IF NOT deleted THEN RETURN NEXT; RETURN; END IF;
  -- Whoever waits looks, and finds that it is gone.
  PERFORM ${s}.wake(me, q, 0, -1);
  PERFORM ${s}.wake(me, q, 1, -1);
  PERFORM ${s}.tell('hold ' || q);
  kids := ARRAY(SELECT k.id FROM ${s}.key k WHERE k.queue = q ORDER BY k.id FOR UPDATE);
  DELETE FROM ${s}.item i WHERE i.key = ANY (kids);
  DELETE FROM ${s}.ready r WHERE r.queue = q;
  DELETE FROM ${s}.key k WHERE k.queue = q;
  DELETE FROM ${s}.delayed d WHERE d.n = ANY (ARRAY(SELECT x.n FROM ${s}.delayed x WHERE x.queue = q));
  DELETE FROM ${s}.receipt r WHERE r.queue = q;
  DELETE FROM ${s}.dead d WHERE d.queue = q;
  DELETE FROM ${s}.counter c WHERE c.queue = q;
  DELETE FROM ${s}.sleeper z WHERE z.queue = q;
  DELETE FROM ${s}.queue z WHERE z.id = q;
  RETURN NEXT;
END`,
    ),
  ].join("");
}
