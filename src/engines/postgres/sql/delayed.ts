import { define, IDLE, LEASED, NOW } from "./functions.ts";

/** So many in one transaction; the rest in the next, so that others get their turn. */
export const AT_A_TIME = 500;

/**
 * Delayed items, and those of the application's transactions, take their places in line. However many of them a key has, they are moved as a set and a
 * bounded number at a time: the rows of the key and of the counter are written once for a level, not once for each item. Those that are left come before
 * what is submitted meanwhile at their level, because that is put behind them (`submit`).
 */
export function delayedFunctions(s: string): string {
  return [
    // Of these keys, whose rows are locked: what was submitted in mode latest, in transactions that have been committed, replaces what was there.
    define(
      `${s}.apply_latest(me bigint, kids bigint[]) RETURNS void`,
      `
DECLARE x record;
BEGIN
  IF NOT EXISTS (SELECT FROM ${s}.delayed WHERE latest AND NOT counted) THEN RETURN; END IF;
  FOR x IN
    SELECT k.id, k.queue, z.n, z.level FROM (SELECT y.id, y.queue, y.name FROM ${s}.key y WHERE y.id = ANY (kids) OFFSET 0) k
    CROSS JOIN LATERAL (
      SELECT d.n, d.level FROM ${s}.delayed d WHERE d.queue = k.queue AND d.key = k.name AND d.latest AND NOT d.counted ORDER BY d.n DESC LIMIT 1) z
  LOOP
    PERFORM ${s}.replace_waiting(me, x.id, x.n);
    UPDATE ${s}.delayed SET counted = true WHERE n = x.n;
    UPDATE ${s}.key SET delayed = delayed + 1 WHERE id = x.id;
    PERFORM ${s}.count(me, x.queue, x.level, 0, 1, 0, 0);
    -- It may have replaced everything that was there.
    PERFORM ${s}.elect(x.id);
  END LOOP;
END`,
    ),

    // What was submitted for these keys in transactions that have been committed, and is not due, is counted. Returns how many were: fewer than
    // so many at a time means that none is left.
    define(
      `${s}.count_in_keys(me bigint, kids bigint[], until bigint) RETURNS integer`,
      `
DECLARE d_r tid[]; d_k bigint[]; d_q integer[]; d_l integer[]; x record;
BEGIN
  IF NOT EXISTS (SELECT FROM ${s}.delayed WHERE NOT counted) THEN RETURN 0; END IF;
  PERFORM ${s}.apply_latest(me, kids);
  SELECT array_agg(y.spot), array_agg(y.id), array_agg(y.queue), array_agg(y.level) INTO d_r, d_k, d_q, d_l FROM (
    SELECT k.id, k.queue, z.spot, z.level FROM (SELECT y.id, y.queue, y.name FROM ${s}.key y WHERE y.id = ANY (kids) OFFSET 0) k
    CROSS JOIN LATERAL (
      SELECT d.ctid AS spot, d.level FROM ${s}.delayed d WHERE d.queue = k.queue AND d.key = k.name AND NOT d.counted AND d.due > until
      ORDER BY d.n LIMIT ${AT_A_TIME}) z
    LIMIT ${AT_A_TIME}) y;
  IF d_r IS NULL THEN RETURN 0; END IF;
  UPDATE ${s}.delayed SET counted = true WHERE ctid = ANY (d_r);
  UPDATE ${s}.key k SET delayed = k.delayed + u.c FROM (SELECT z.kid, count(*)::integer AS c FROM unnest(d_k) z(kid) GROUP BY z.kid) u
  WHERE k.id = ANY (ARRAY[u.kid]);
  FOR x IN SELECT u.q, u.l, count(*)::integer AS c FROM unnest(d_q, d_l) u(q, l) GROUP BY u.q, u.l LOOP
    PERFORM ${s}.count(me, x.q, x.l, 0, x.c, 0, 0);
  END LOOP;
  RETURN cardinality(d_r);
END`,
    ),

    // The items of these keys, whose rows are locked, that are due take their places, the most urgent of a key first. Of each key at most so many, or
    // as many as it is named times. Fewer than so many at a time in all means that no key has any left, but for that.
    define(
      `${s}.arrive_due(me bigint, kids bigint[], most integer, until bigint, OUT moved integer, OUT opened integer)`,
      `
DECLARE d_r tid[]; d_k bigint[]; d_q integer[]; d_l integer[]; d_o bigint[]; d_c integer[]; x record;
BEGIN
  moved := 0; opened := 0;
  PERFORM ${s}.apply_latest(me, kids);
  SELECT array_agg(y.spot), array_agg(y.id), array_agg(y.queue), array_agg(y.level), array_agg(y.o), array_agg(y.c) INTO d_r, d_k, d_q, d_l, d_o, d_c
  FROM (
    -- One that yielded comes back to where it stood.
    SELECT y.*, y.counted::integer AS c, CASE WHEN y.ord > 0 THEN y.ord ELSE nextval('${s}.number') END AS o FROM (
      SELECT * FROM (
        SELECT k.id, k.queue, w.* FROM (SELECT z.kid, coalesce(most, count(*)) AS most FROM unnest(kids) z(kid) GROUP BY z.kid) u
        CROSS JOIN LATERAL (SELECT z.id, z.queue, z.name, cardinality(z.lane) AS levels FROM ${s}.key z WHERE z.id = u.kid OFFSET 0) k
        CROSS JOIN LATERAL (
          SELECT z.* FROM generate_series(0, k.levels - 1) l CROSS JOIN LATERAL (
            SELECT d.ctid AS spot, d.n, d.level, d.ord, d.due, d.counted FROM ${s}.delayed d
            WHERE d.queue = k.queue AND d.key = k.name AND d.level = l AND d.due <= until ORDER BY d.due, d.n LIMIT u.most) z
          LIMIT u.most) w
        LIMIT ${AT_A_TIME}) y
      ORDER BY y.due, y.n OFFSET 0) y) y;
  IF d_r IS NULL THEN RETURN; END IF;
  moved := cardinality(d_r);
  WITH gone AS (
    DELETE FROM ${s}.delayed z USING unnest(d_r, d_k, d_o) u(r, kid, o) WHERE z.ctid = u.r
    RETURNING u.kid, u.o, z.queue, z.level, z.attempt, z.keep, z.submitted, z.id, z.type, z.headers, z.body, z.bytes, z.tried, z.losses),
  told AS (
    UPDATE ${s}.receipt r SET ord = g.o
    FROM gone g CROSS JOIN LATERAL (SELECT y.ctid AS spot FROM ${s}.receipt y WHERE y.queue = g.queue AND y.id = g.id OFFSET 0) f WHERE r.ctid = f.spot)
  INSERT INTO ${s}.item SELECT g.kid, g.o, g.level, g.attempt, 0, g.keep, g.submitted, g.id, g.type, g.headers, g.body, g.bytes, g.tried, g.losses FROM gone g;
  -- What \`arrive\` does, for all of a level.
  FOR x IN
    SELECT u.l, array_agg(u.kid) AS ks, array_agg(u.n) AS ns, array_agg(u.c) AS cs, array_agg(u.o) AS firsts FROM (
      SELECT z.l, z.kid, count(*)::integer AS n, sum(z.c)::integer AS c, min(z.o) AS o FROM unnest(d_l, d_k, d_c, d_o) z(l, kid, c, o) GROUP BY z.l, z.kid) u
    GROUP BY u.l
  LOOP
    UPDATE ${s}.key k SET waiting = k.waiting + u.n, delayed = k.delayed - u.c, lane[x.l + 1] = k.lane[x.l + 1] + u.n,
      floors[x.l + 1] = least(k.floors[x.l + 1], u.o - 1),
      backoff = k.backoff OR (k.state = ${LEASED} AND k.level = x.l AND k.ord > u.o)
    FROM unnest(x.ks, x.ns, x.cs, x.firsts) u(kid, n, c, o) WHERE k.id = ANY (ARRAY[u.kid]);
  END LOOP;
  FOR x IN SELECT u.q, u.l, count(*)::integer AS n, sum(u.c)::integer AS c FROM unnest(d_q, d_l, d_c) u(q, l, c) GROUP BY u.q, u.l LOOP
    PERFORM ${s}.count(me, x.q, x.l, x.n, -x.c, 0, 0);
  END LOOP;
  -- Keys that become ready stand in the order in which their items were due.
  SELECT sum(${s}.elect(u.kid)) INTO opened FROM (SELECT z.kid FROM unnest(d_k) WITH ORDINALITY z(kid, i) GROUP BY z.kid ORDER BY min(z.i) OFFSET 0) u;
END`,
    ),

    // Items that are due take their places; or all is counted, a few at a time, that was submitted in transactions that have been committed. Returns the
    // queues that have news; none: there is nothing left to count.
    define(
      `${s}.sweep_delayed(me bigint, uncounted boolean) RETURNS TABLE (queue integer, rung boolean)`,
      `
#variable_conflict use_column
DECLARE qs integer[]; names text[]; kids bigint[]; now bigint := ${NOW};
BEGIN
  IF uncounted THEN
    SELECT array_agg(x.queue), array_agg(x.key) INTO qs, names FROM (
      SELECT d.queue, d.key FROM ${s}.delayed d WHERE NOT d.counted ORDER BY d.queue, d.n LIMIT ${AT_A_TIME}) x;
  ELSE
    SELECT array_agg(x.queue), array_agg(x.key) INTO qs, names FROM (
      SELECT d.queue, d.key FROM ${s}.delayed d WHERE d.due <= now ORDER BY d.due, d.n LIMIT ${AT_A_TIME}) x;
  END IF;
  IF qs IS NULL THEN RETURN; END IF;
  IF NOT uncounted THEN
    -- One process at a time: with several, the row of a key that has many would be locked whenever a worker looks for it. Others look again soon.
    PERFORM FROM ${s}.store FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN; END IF;
  END IF;
  kids := ${s}.lock_keys(qs, names);
  PERFORM ${s}.lock_counters(me, qs);
  PERFORM ${s}.arrive_due(me, kids, NULL, now);
  IF uncounted THEN PERFORM ${s}.count_in_keys(me, kids, now); END IF;
  -- Whom another process had swept before was only made anew.
  PERFORM ${s}.elect(x.id) FROM ${s}.key x WHERE x.id = ANY (kids) AND x.state = ${IDLE};
  RETURN QUERY SELECT w.q, ${s}.wake(me, w.q, 0, cardinality(qs)) FROM (SELECT DISTINCT u.q FROM unnest(qs) u(q)) w;
END`,
    ),

    // How many there are of a queue, or of one of its keys, that nothing else has counted: exactly, if with so many more there may not be room for them.
    // Otherwise as many as there can be at most, which their numbers tell at once: to count them would take longer with each that nobody has swept.
    define(
      `${s}.uncounted(q integer, name text, more bigint, room bigint) RETURNS bigint`,
      `
DECLARE first bigint; c bigint; most bigint;
BEGIN
  IF name IS NULL THEN
    SELECT d.n INTO first FROM ${s}.delayed d WHERE d.queue = q AND NOT d.counted ORDER BY d.n LIMIT 1;
  ELSE
    SELECT d.n INTO first FROM ${s}.delayed d WHERE d.queue = q AND d.key = name AND NOT d.counted ORDER BY d.n LIMIT 1;
  END IF;
  IF first IS NULL THEN RETURN 0; END IF;
  -- Drawn afterwards, so that none that was seen has a greater one.
  most := nextval('${s}.number') - first;
  IF most + more < room THEN RETURN most; END IF;
  IF name IS NULL THEN
    SELECT count(*) INTO c FROM (SELECT FROM ${s}.delayed d WHERE d.queue = q AND NOT d.counted LIMIT greatest(room, 1)) z;
  ELSE
    SELECT count(*) INTO c FROM (SELECT FROM ${s}.delayed d WHERE d.queue = q AND d.key = name AND NOT d.counted LIMIT greatest(room, 1)) z;
  END IF;
  RETURN c;
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
  ].join("");
}
