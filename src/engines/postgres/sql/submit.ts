import { AT_A_TIME } from "./delayed.ts";
import { answerKnownId, BLOCKED, define, IDLE, LEASED, NOW, READY } from "./functions.ts";
import { lastCovered } from "./runs.ts";

/** How long one waits for another who submits the same id: longer than a commit takes on a disk. */
const UNDECIDED_ID_MS = 25;

/**
 * Accepts items. The order of the checks is part of the contract: a known id comes first.
 *
 * Rows that come back: for each item its position, counted from 1; 0 a queue that has news; -1 that the item was handed out at once to whoever waits
 * for work on the handle that submits it, with the number of its key as \`key\` and its fence as \`at\`.
 */
export function submitFunctions(s: string): string {
  return [
    // Every item of the key that no lease covers gives way to a newer one, of which the number is given. A key that is ready at that level keeps its place.
    define(
      `${s}.replace_waiting(me bigint, kid bigint, newer bigint) RETURNS text[]`,
      `
DECLARE k ${s}.key; last bigint; now bigint := ${NOW}; ids text[]; lvls integer[]; ws integer[]; ds integer[]; x record;
BEGIN
  SELECT * INTO k FROM ${s}.key WHERE id = kid;
  last := coalesce(${lastCovered(s, "k")}, k.ord);
  -- All at once: a row of the key and one of the counter for each item would be walked over by the next.
  WITH stood AS (
    DELETE FROM ${s}.item WHERE key = kid AND NOT (k.state = ${LEASED} AND NOT k.held AND level = k.level AND ord BETWEEN k.ord AND last)
    RETURNING level, ord, id, keep, attempt, tried),
  later AS (
    DELETE FROM ${s}.delayed WHERE queue = k.queue AND key = k.name AND (counted OR n < newer) RETURNING level, ord, id, keep, attempt, tried, counted),
  gone AS MATERIALIZED (SELECT z.*, 1 AS w, 0 AS d FROM stood z
    UNION ALL SELECT z.level, z.ord, z.id, z.keep, z.attempt, z.tried, 0, z.counted::integer FROM later z),
  -- What \`remember\` does, for all of them.
  told AS (
    UPDATE ${s}.receipt r SET state = 'replaced', ended = now, attempt = g.attempt, result_type = NULL, result = NULL, result_bytes = NULL,
      failure = NULL, tried = g.tried,
      -- The clock may be ahead of what the batch goes by: the next of it finds that what is not kept is over.
      expires = CASE WHEN g.keep > 0 THEN now + g.keep ELSE 0 END
    FROM gone g CROSS JOIN LATERAL (SELECT y.ctid AS spot FROM ${s}.receipt y WHERE y.queue = k.queue AND y.id = g.id OFFSET 0) f WHERE r.ctid = f.spot)
  SELECT array_agg(coalesce(g.id, ${s}.given_id(kid, g.level, g.ord))), array_agg(g.level), array_agg(g.w), array_agg(g.d) INTO ids, lvls, ws, ds FROM gone g;
  FOR x IN SELECT u.l, sum(u.w)::integer AS w, sum(u.d)::integer AS d FROM unnest(lvls, ws, ds) u(l, w, d) GROUP BY u.l LOOP
    UPDATE ${s}.key SET waiting = waiting - x.w, delayed = delayed - x.d, lane[x.l + 1] = lane[x.l + 1] - x.w WHERE id = kid;
    PERFORM ${s}.count(me, k.queue, x.l, -x.w, -x.d, 0, 0);
  END LOOP;
  RETURN coalesce(ids, '{}');
END`,
    ),

    define(
      `${s}.submit(me bigint, rings integer[], outcome_rings integer[], plain boolean, qs integer[], names text[], lvls integer[], ids text[], types text[], heads text[], bodies text[],
  byteas bytea[], delays bigint[], modes text[], key_limits bigint[], queue_limits bigint[], keeps bigint[], taker text, lease bigint, slept boolean)
RETURNS TABLE (n integer, code integer, id text, key text, level integer, at bigint, replaced text[])`,
      `
#variable_conflict use_column
DECLARE
  kids bigint[]; now bigint; k ${s}.key; i integer; had ${s}.receipt; total bigint; o bigint; given text; gone text[];
  opened integer := 0; fresh boolean; size bigint; many integer := cardinality(names); ords bigint[];
  p_k bigint[]; p_c integer[]; p_first bigint[];
  q record; kid bigint; f bigint; here tid; lanes integer[]; late boolean := false; due bigint;
BEGIN
  IF cardinality(rings) + cardinality(outcome_rings) > 0 THEN PERFORM ${s}.ring(me, rings, outcome_rings); END IF;
  IF plain AND many = 1 AND lvls[1] >= 0 THEN
    -- One alone, which somebody may be waiting for, and whose key has nothing else to do: as few statements as it takes.
    SELECT ARRAY[x.id] INTO kids FROM ${s}.key x WHERE x.queue = qs[1] AND x.name = names[1] FOR UPDATE;
    IF NOT FOUND THEN
      now := ${NOW};
      SELECT cardinality(z.levels) AS levels, z.paused, c.total, c.waits, EXISTS (SELECT FROM ${s}.delayed d WHERE d.due <= now) AS due INTO q
      FROM ${s}.queue z CROSS JOIN (
        SELECT coalesce(sum(y.total), 0) AS total, coalesce(sum(y.total - y.delayed), 0) AS waits FROM ${s}.counter y WHERE y.queue = qs[1]) c
      WHERE z.id = qs[1];
      IF FOUND AND NOT q.due AND q.total < queue_limits[1] AND key_limits[1] > 0 THEN
        o := nextval('${s}.number');
        lanes := array_fill(0, ARRAY[q.levels]);
        lanes[lvls[1] + 1] := 1;
        INSERT INTO ${s}.key AS x (id, queue, name, state, level, place, since, waiting, lane, floors)
        VALUES (nextval('${s}.number'), qs[1], names[1], ${READY}, lvls[1], o, now, 1, lanes, array_fill(0::bigint, ARRAY[q.levels]))
        ON CONFLICT DO NOTHING RETURNING x.id INTO kid;
      END IF;
    END IF;
    IF kid IS NOT NULL THEN
      INSERT INTO ${s}.item AS x VALUES (kid, o, lvls[1], 0, 0, 0, now, NULL, types[1], heads[1], bodies[1], byteas[1]) RETURNING x.ctid INTO here;
      n := 1; code := 0; id := ${s}.given_id(kid, lvls[1], o); key := NULL; level := lvls[1]; at := now; replaced := NULL;
      RETURN NEXT;
      IF taker IS NOT NULL AND q.waits = 0 AND NOT q.paused THEN
        -- Somebody here waits, and nothing else does: it is handed out with the same commit. The fence is drawn now that the row of the key is ours.
        UPDATE ${s}.key x SET state = ${LEASED}, ord = o, spot = here, fence = nextval('${s}.number'), at = now + lease, streak = now,
          timer = now + lease, owner = me, worker = taker, waiting = 0, lane = array_fill(0, ARRAY[q.levels])
        WHERE x.id = kid RETURNING x.fence INTO f;
        INSERT INTO ${s}.timer VALUES (now + lease, nextval('${s}.number'), ARRAY[kid]);
        PERFORM ${s}.count(me, qs[1], lvls[1], 0, 0, 1, 0);
        IF slept THEN DELETE FROM ${s}.sleeper z WHERE z.queue = qs[1] AND z.kind = 0 AND z.handle = me; END IF;
        n := -1; id := NULL; key := kid; at := f;
        RETURN NEXT;
        RETURN;
      END IF;
      INSERT INTO ${s}.ready VALUES (qs[1], lvls[1], o, kid, now);
      PERFORM ${s}.count(me, qs[1], lvls[1], 1, 0, 0, 0);
      n := 0; code := CASE WHEN ${s}.wake(me, qs[1], 0, 1) THEN 1 ELSE 0 END; id := NULL; level := qs[1]; at := NULL;
      RETURN NEXT;
      RETURN;
    END IF;
  END IF;
  IF kids IS NULL THEN kids := ${s}.lock_keys(qs, names); END IF;
  now := ${NOW};
  -- What was due before, transactions that were committed before included, comes before what is submitted now.
  IF NOT plain THEN PERFORM ${s}.lock_counters(me, qs); END IF;
  -- So much that some of it has to be left is rare, and then what comes now is put behind it one by one.
  IF EXISTS (SELECT FROM ${s}.delayed WHERE due <= now) THEN
    SELECT z.moved = ${AT_A_TIME}, z.opened INTO late, opened FROM ${s}.arrive_due(me, kids, ${AT_A_TIME}, now) z;
    late := ${s}.count_in_keys(me, kids, now) = ${AT_A_TIME} OR late;
  ELSIF NOT plain THEN
    late := ${s}.count_in_keys(me, kids, now) = ${AT_A_TIME};
  END IF;
  IF NOT plain THEN
    -- What ran waits again when its lease has run out, also when nobody has seen to it yet: modes and limits ask for it.
    SELECT opened + coalesce(sum(${s}.expire(me, x)), 0) INTO opened FROM ${s}.key x WHERE x.id = ANY (kids) AND x.state = ${LEASED} AND x.at <= now;
  END IF;
  IF late THEN plain := false; END IF;

  IF plain AND lvls[1] >= 0 THEN
    SELECT coalesce(sum(c.total), 0) + many <= queue_limits[1] INTO plain FROM ${s}.counter c WHERE c.queue = qs[1];
  ELSE
    plain := false;
  END IF;
  IF plain THEN
    SELECT array_agg(u.kid), array_agg(u.c), bool_and(x.waiting + x.delayed + u.c <= key_limits[1]
      AND NOT (x.state IN (${READY}, ${BLOCKED}) AND x.level > lvls[1])) INTO p_k, p_c, plain
    FROM (SELECT u.kid, count(*)::integer AS c FROM unnest(kids) u(kid) GROUP BY u.kid ORDER BY u.kid) u
    CROSS JOIN LATERAL (SELECT * FROM ${s}.key y WHERE y.id = u.kid OFFSET 0) x;
  END IF;

  IF plain THEN
    -- Nothing out of the ordinary: all of them at once.
    SELECT array_agg(nextval('${s}.number')) INTO ords FROM generate_series(1, many);
    INSERT INTO ${s}.item (key, ord, level, keep, submitted, type, headers, body, bytes)
    SELECT u.kid, u.o, lvls[1], 0, now, u.t, u.h, u.b, u.y FROM unnest(kids, ords, types, heads, bodies, byteas) u(kid, o, t, h, b, y);
    -- In the order of the keys, so that what belongs to one is found by halving.
    SELECT array_agg(y.first) INTO p_first FROM (SELECT min(u.o) AS first FROM unnest(kids, ords) u(kid, o) GROUP BY u.kid ORDER BY u.kid) y;
    WITH changed AS (
      UPDATE ${s}.key x SET waiting = x.waiting + p_c[width_bucket(x.id, p_k)],
        lane[lvls[1] + 1] = x.lane[lvls[1] + 1] + p_c[width_bucket(x.id, p_k)],
        state = CASE WHEN x.state = ${IDLE} THEN ${READY} ELSE x.state END,
        level = CASE WHEN x.state = ${IDLE} THEN lvls[1] ELSE x.level END,
        place = CASE WHEN x.state = ${IDLE} THEN p_first[width_bucket(x.id, p_k)] ELSE x.place END,
        since = CASE WHEN x.state = ${IDLE} THEN now ELSE x.since END
      WHERE x.id = ANY (p_k) RETURNING x.id, x.place, x.paused, x.wanted)
    INSERT INTO ${s}.ready SELECT qs[1], lvls[1], c.place, c.id, now FROM changed c
    WHERE c.place = p_first[width_bucket(c.id, p_k)] AND NOT c.paused AND NOT c.wanted;
    GET DIAGNOSTICS i = ROW_COUNT;
    opened := opened + i;
    PERFORM ${s}.count(me, qs[1], lvls[1], many, 0, 0, 0);
    RETURN QUERY SELECT u.i::integer, 0, ${s}.given_id(u.kid, lvls[1], u.o), NULL::text, lvls[1], now, NULL::text[]
      FROM unnest(kids, ords) WITH ORDINALITY u(kid, o, i);
  ELSE
    FOR i IN 1 .. many LOOP
      given := ids[i];
      ${answerKnownId(s)}
      SELECT * INTO k FROM ${s}.key x WHERE x.id = kids[i];
      IF NOT FOUND THEN
        -- An earlier one of this batch was the last thing the key had, and it gave way.
        kids[i] := (${s}.lock_keys(ARRAY[qs[i]], ARRAY[names[i]]))[1];
        SELECT * INTO k FROM ${s}.key x WHERE x.id = kids[i];
      END IF;
      o := nextval('${s}.number');
      size := k.waiting + k.delayed;
      IF late THEN size := size + ${s}.uncounted(qs[i], names[i], 1, key_limits[i] - size); END IF;
      IF lvls[i] < 0 THEN
        RETURN QUERY SELECT i, 2, NULL, NULL, NULL::integer, now, NULL::text[]; CONTINUE;
      ELSIF modes[i] = 'strict' AND (k.state <> ${IDLE} OR size > 0) THEN
        RETURN QUERY SELECT i, 3, NULL, NULL, NULL::integer, now, NULL::text[]; CONTINUE;
      ELSIF coalesce(modes[i], 'fifo') = 'fifo' AND size >= key_limits[i] THEN
        RETURN QUERY SELECT i, 4, NULL, NULL, NULL::integer, now, NULL::text[]; CONTINUE;
      ELSIF NOT (coalesce(modes[i], 'fifo') = 'latest' AND size >= k.covered) THEN
        SELECT coalesce(sum(c.total), 0) INTO total FROM ${s}.counter c WHERE c.queue = qs[i];
        IF total >= queue_limits[i] THEN
          RETURN QUERY SELECT i, 5, NULL, NULL, NULL::integer, now, NULL::text[]; CONTINUE;
        END IF;
      END IF;
      -- NULL: it takes its place now. Nothing is left before one that replaces everything.
      due := CASE WHEN delays[i] > 0 THEN now + delays[i]
        WHEN late AND coalesce(modes[i], 'fifo') <> 'latest' AND EXISTS (
          SELECT FROM generate_series(0, lvls[i]) l
          CROSS JOIN LATERAL (SELECT FROM ${s}.delayed d WHERE d.queue = qs[i] AND d.key = names[i] AND d.level = l AND d.due <= now LIMIT 1) z) THEN now END;
      IF given IS NOT NULL THEN
        -- An expired one of the same id may still be there. One that another process writes now is waited for, but not for long: it may
        -- be a transaction of the application, which lasts, and this connection has other things to do.
        PERFORM set_config('lock_timeout', '${UNDECIDED_ID_MS}', true);
        INSERT INTO ${s}.receipt AS r (queue, id, key, level, submitted, ord)
        VALUES (qs[i], given, names[i], lvls[i], now, CASE WHEN due IS NULL THEN o ELSE -o END)
        ON CONFLICT ON CONSTRAINT receipt_pkey DO UPDATE SET key = excluded.key, level = excluded.level, submitted = excluded.submitted,
          ord = excluded.ord, state = NULL, ended = NULL, expires = NULL, attempt = NULL, result_type = NULL, result = NULL,
          result_bytes = NULL, failure = NULL, missing = NULL, tried = NULL
        WHERE r.expires <= now;
        fresh := FOUND;
        PERFORM set_config('lock_timeout', '0', true);
        IF NOT fresh THEN
          SELECT * INTO had FROM ${s}.receipt r WHERE r.queue = qs[i] AND r.id = given;
          RETURN QUERY SELECT i, 1, given, had.key, had.level::integer, had.submitted, NULL::text[];
          CONTINUE;
        END IF;
      ELSIF keeps[i] > 0 OR due IS NOT NULL THEN
        given := ${s}.given_id(kids[i], lvls[i], o);
        INSERT INTO ${s}.receipt (queue, id, key, level, submitted, ord)
        VALUES (qs[i], given, names[i], lvls[i], now, CASE WHEN due IS NULL THEN o ELSE -o END);
      END IF;
      gone := NULL;
      IF modes[i] = 'latest' AND size > 0 THEN gone := ${s}.replace_waiting(me, kids[i], o); END IF;
      IF due IS NOT NULL THEN
        INSERT INTO ${s}.delayed VALUES (o, qs[i], names[i], lvls[i], 0, due, true, false, 0, keeps[i], now, given, types[i],
          heads[i], bodies[i], byteas[i]);
        UPDATE ${s}.key x SET delayed = x.delayed + 1 WHERE x.id = kids[i];
        PERFORM ${s}.count(me, qs[i], lvls[i], 0, 1, 0, 0);
        PERFORM ${s}.elect(kids[i]);
        opened := opened + 1;
      ELSE
        INSERT INTO ${s}.item VALUES (kids[i], o, lvls[i], 0, 0, keeps[i], now, given, types[i], heads[i], bodies[i], byteas[i]);
        opened := opened + ${s}.arrive(me, kids[i], lvls[i], o);
        -- It may have replaced everything that was there.
        PERFORM ${s}.elect(kids[i]);
      END IF;
      RETURN QUERY SELECT i, 0, coalesce(given, ${s}.given_id(kids[i], lvls[i], o)), names[i], lvls[i], now, gone;
    END LOOP;
    -- Keys that were made for items that were refused.
    PERFORM ${s}.elect(x.id) FROM ${s}.key x WHERE x.id = ANY (kids) AND x.state = ${IDLE};
  END IF;
  IF opened > 0 THEN
    RETURN QUERY SELECT 0, CASE WHEN ${s}.wake(me, w.q, 0, opened) THEN 1 ELSE 0 END, NULL, NULL, w.q, NULL::bigint, NULL::text[]
      FROM (SELECT DISTINCT u.q FROM unnest(qs) u(q)) w;
  END IF;
END`,
    ),
  ].join("");
}
