import { BLOCKED, define, LEASED, NOW } from "./functions.ts";

/** So many in one transaction; the rest in the next, so that others get their turn. */
const AT_A_TIME = 500;
/** Rows of timers: each stands for a batch of leases. */
const TIMERS_AT_A_TIME = 20;

/** Everything that happens because time passes: leases run out, back-offs end, delayed items arrive. */
export function dueFunctions(s: string): string {
  return [
    // What was submitted for these keys, whose rows are locked, in transactions that have been committed: as if it were submitted now.
    define(
      `${s}.count_in_keys(me bigint, kids bigint[]) RETURNS void`,
      `
DECLARE d record;
BEGIN
  IF NOT EXISTS (SELECT FROM ${s}.delayed WHERE NOT counted) THEN RETURN; END IF;
  FOR d IN
    SELECT x.*, k.id AS kid FROM (SELECT y.id, y.queue, y.name FROM ${s}.key y WHERE y.id = ANY (kids) OFFSET 0) k
    CROSS JOIN LATERAL (SELECT z.n, z.queue, z.level, z.latest FROM ${s}.delayed z WHERE z.queue = k.queue AND z.key = k.name AND NOT z.counted OFFSET 0) x
    ORDER BY x.n
  LOOP
    IF d.latest THEN PERFORM ${s}.replace_waiting(me, d.kid); END IF;
    UPDATE ${s}.delayed SET counted = true WHERE n = d.n;
    UPDATE ${s}.key SET delayed = delayed + 1 WHERE id = d.kid;
    PERFORM ${s}.count(me, d.queue, d.level, 0, 1, 0, 0);
    -- It may have replaced everything that was there.
    IF d.latest THEN PERFORM ${s}.elect(d.kid); END IF;
  END LOOP;
END`,
    ),

    // The same for all keys, a few at a time. Returns the queues that have news; none: there is nothing left to count in.
    define(
      `${s}.count_in(me bigint) RETURNS TABLE (queue integer, rung boolean)`,
      `
#variable_conflict use_column
DECLARE qs integer[]; names text[]; kids bigint[]; opened integer;
BEGIN
  SELECT array_agg(x.queue), array_agg(x.key) INTO qs, names FROM (
    SELECT d.queue, d.key FROM ${s}.delayed d WHERE NOT d.counted ORDER BY d.queue, d.n LIMIT ${AT_A_TIME}) x;
  IF qs IS NULL THEN RETURN; END IF;
  kids := ${s}.lock_keys(qs, names);
  PERFORM ${s}.lock_counters(me, qs);
  opened := ${s}.arrive_due(me, kids, ${NOW});
  PERFORM ${s}.elect(x.id) FROM ${s}.key x WHERE x.id = ANY (kids) AND x.state = 0;
  RETURN QUERY SELECT w.q, ${s}.wake(me, w.q, 0, opened) FROM (SELECT DISTINCT u.q FROM unnest(qs) u(q)) w;
END`,
    ),

    // The delayed items of these keys, whose rows are locked, that are due.
    define(
      `${s}.arrive_due(me bigint, kids bigint[], until bigint) RETURNS integer`,
      `
DECLARE d record; opened integer := 0; o bigint;
BEGIN
  PERFORM ${s}.count_in_keys(me, kids);
  FOR d IN
    SELECT x.*, k.id AS kid FROM (SELECT y.id, y.queue, y.name FROM ${s}.key y WHERE y.id = ANY (kids) OFFSET 0) k
    CROSS JOIN LATERAL (SELECT * FROM ${s}.delayed z WHERE z.queue = k.queue AND z.key = k.name AND z.due <= until AND z.counted OFFSET 0) x
    ORDER BY x.due, x.n
  LOOP
    DELETE FROM ${s}.delayed WHERE n = d.n;
    o := CASE WHEN d.ord > 0 THEN d.ord ELSE nextval('${s}.number') END;
    INSERT INTO ${s}.item VALUES (d.kid, o, d.level, d.attempt, 0, d.keep, d.submitted, d.id, d.type, d.headers, d.body, d.bytes);
    IF d.id IS NOT NULL THEN UPDATE ${s}.receipt SET ord = o WHERE queue = d.queue AND id = d.id; END IF;
    UPDATE ${s}.key SET delayed = delayed - 1 WHERE id = d.kid;
    PERFORM ${s}.count(me, d.queue, d.level, 0, -1, 0, 0);
    opened := opened + ${s}.arrive(me, d.kid, d.level, o);
    PERFORM ${s}.elect(d.kid);
  END LOOP;
  RETURN opened;
END`,
    ),

    // Milliseconds until something is due; below zero if nothing will be.
    define(
      `${s}.due_in() RETURNS bigint`,
      `
DECLARE first bigint;
BEGIN
  SELECT least((SELECT at FROM ${s}.timer ORDER BY at LIMIT 1), (SELECT due FROM ${s}.delayed ORDER BY due LIMIT 1)) INTO first;
  RETURN CASE WHEN first IS NULL THEN -1 ELSE greatest(0, first - ${NOW}) END;
END`,
    ),

    // Delayed items that are due take their places. Returns the queues that have news.
    define(
      `${s}.sweep_delayed(me bigint) RETURNS TABLE (queue integer, rung boolean)`,
      `
#variable_conflict use_column
DECLARE qs integer[]; names text[]; kids bigint[]; now bigint := ${NOW};
BEGIN
  SELECT array_agg(x.queue), array_agg(x.key) INTO qs, names FROM (
    SELECT d.queue, d.key FROM ${s}.delayed d WHERE d.due <= now ORDER BY d.due, d.n LIMIT ${AT_A_TIME}) x;
  IF qs IS NULL THEN RETURN; END IF;
  kids := ${s}.lock_keys(qs, names);
  PERFORM ${s}.lock_counters(me, qs);
  PERFORM ${s}.arrive_due(me, kids, now);
  -- Whom another process had swept before was only made anew.
  PERFORM ${s}.elect(x.id) FROM ${s}.key x WHERE x.id = ANY (kids) AND x.state = 0;
  RETURN QUERY SELECT w.q, ${s}.wake(me, w.q, 0, cardinality(qs)) FROM (SELECT DISTINCT u.q FROM unnest(qs) u(q)) w;
END`,
    ),

    // The lease has run out, and whoever had it is told. What ran waits again where it stood.
    define(
      `${s}.expire(me bigint, k ${s}.key) RETURNS integer`,
      `
BEGIN
  PERFORM ${s}.tell('lost ' || k.owner || ' ' || k.fence);
  IF k.held THEN RETURN ${s}.let_go(k.id); END IF;
  IF k.cancel THEN RETURN ${s}.finish(me, k, 'cancelled', NULL, NULL, NULL, NULL); END IF;
  RETURN ${s}.give_back(me, k, 1, 0);
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
      UPDATE ${s}.key SET state = 0 WHERE id = k.id;
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
DECLARE k ${s}.key; now bigint := ${NOW}; p bigint;
BEGIN
  SELECT * INTO k FROM ${s}.key WHERE id = kid;
  IF NOT FOUND OR k.paused OR k.wanted THEN RETURN 0; END IF;
  IF k.state = 0 THEN RETURN ${s}.elect(kid); END IF;
  IF k.state <> 1 THEN RETURN 0; END IF;
  -- At a new place: those who look for work begin behind the old one, and would pass it over.
  DELETE FROM ${s}.ready WHERE queue = k.queue AND level = k.level AND place = k.place;
  p := nextval('${s}.number');
  UPDATE ${s}.key SET place = p, since = now WHERE id = kid;
  INSERT INTO ${s}.ready VALUES (k.queue, k.level, p, kid, now);
  RETURN 1;
END`,
    ),
  ].join("");
}
