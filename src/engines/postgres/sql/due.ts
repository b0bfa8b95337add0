import { BLOCKED, define, IDLE, LEASED, NOW, READY } from "./functions.ts";

/** Rows of timers: each stands for a batch of leases. */
const TIMERS_AT_A_TIME = 20;

/** What happens because time passes: leases run out, back-offs end. Delayed items arrive in `delayed.ts`. */
export function dueFunctions(s: string): string {
  return [
    // The lease has run out, and whoever had it is told. What ran waits again where it stood.
    define(
      `${s}.expire(me bigint, k ${s}.key) RETURNS integer`,
      `
BEGIN
  PERFORM ${s}.tell('lost ' || k.owner || ' ' || k.fence);
  IF k.held THEN RETURN ${s}.let_go(me, k); END IF;
  UPDATE ${s}.key SET alone = greatest(alone, k.covered) WHERE id = k.id;
  IF k.cancel THEN RETURN ${s}.finish(me, k, 'cancelled', NULL, NULL, NULL, NULL); END IF;
  RETURN ${s}.give_back(me, k, 'lost', 0, NULL);
END`,
    ),

    // Looks at keys whose time has come. Returns the queues that have news.
    define(
      `${s}.sweep_timers(me bigint) RETURNS TABLE (queue integer, rung boolean)`,
      `
#variable_conflict use_column
DECLARE k ${s}.key; kids bigint[]; later bigint[] := '{}'; first bigint; now bigint := ${NOW}; qs integer[] := '{}'; opened integer := 0;
BEGIN
  WITH rung AS (DELETE FROM ${s}.timer t WHERE t.ctid = ANY (ARRAY(
      SELECT x.ctid FROM ${s}.timer x WHERE x.at <= now ORDER BY x.at LIMIT ${TIMERS_AT_A_TIME} FOR UPDATE SKIP LOCKED)) RETURNING t.keys)
  SELECT array_agg(DISTINCT u.kid ORDER BY u.kid) INTO kids FROM rung, unnest(rung.keys) u(kid);
  IF kids IS NULL THEN RETURN; END IF;
  PERFORM 1 FROM (SELECT x.id FROM ${s}.key x WHERE x.id = ANY (kids) ORDER BY x.id FOR UPDATE) locked;
  PERFORM ${s}.lock_counters(me, ARRAY(SELECT DISTINCT x.queue FROM ${s}.key x WHERE x.id = ANY (kids)));
  FOR k IN SELECT x.* FROM ${s}.key x WHERE x.id = ANY (kids) LOOP
    IF k.state = ${LEASED} AND k.at > now THEN
      later := later || k.id;
      first := least(first, k.at);
      CONTINUE;
    END IF;
    IF k.state = ${LEASED} THEN
      opened := opened + ${s}.expire(me, k);
      qs := qs || k.queue;
    ELSIF k.wanted AND k.kept <= now THEN
      -- Whoever waited to hold it is not there any more.
      UPDATE ${s}.key SET wanted = false WHERE id = k.id;
      PERFORM ${s}.relist(k.id);
      opened := opened + 1;
      qs := qs || k.queue;
    ELSIF k.state = ${BLOCKED} AND k.at <= now THEN
      UPDATE ${s}.key SET state = ${IDLE} WHERE id = k.id;
      opened := opened + ${s}.elect(k.id);
      qs := qs || k.queue;
    END IF;
  END LOOP;
  -- Their timers are gone: whoever hands one out next must not rely on it.
  UPDATE ${s}.key x SET timer = 0 WHERE x.id = ANY (kids) AND x.timer BETWEEN 1 AND now AND NOT x.id = ANY (later);
  IF first IS NOT NULL THEN
    INSERT INTO ${s}.timer VALUES (first, nextval('${s}.number'), later);
    UPDATE ${s}.key x SET timer = first WHERE x.id = ANY (later);
  END IF;
  RETURN QUERY SELECT w.q, ${s}.wake(me, w.q, 0, opened) FROM (SELECT DISTINCT u.q FROM unnest(qs) u(q)) w;
END`,
    ),

    // A key that was kept out of sight, by a pause or for a hold, is listed again if it is ready; and is gone if it has nothing.
    define(
      `${s}.relist(kid bigint) RETURNS integer`,
      `
DECLARE k ${s}.key;
BEGIN
  SELECT * INTO k FROM ${s}.key WHERE id = kid;
  IF NOT FOUND OR k.paused OR k.wanted THEN RETURN 0; END IF;
  -- At a new place: those who look for work begin behind the old one, and would pass it over.
  IF k.state = ${READY} THEN
    DELETE FROM ${s}.ready WHERE queue = k.queue AND level = k.level AND place = k.place;
    UPDATE ${s}.key SET state = ${IDLE} WHERE id = kid;
  END IF;
  IF k.state IN (${IDLE}, ${READY}) THEN RETURN ${s}.elect(kid); END IF;
  RETURN 0;
END`,
    ),
  ].join("");
}
