import { assertSettled, BLOCKED, define, defineForeign, IDLE, LEASED, NOW, READY } from "./functions.ts";
import { countInPlace } from "./line.ts";

/** How long one waits for another who submits the same id: longer than a commit takes on a disk. */
const UNDECIDED_ID_MS = 25;

/** Accepts items. The order of the checks is part of the contract: a known id comes first. */
export function submitFunctions(s: string, channel: string): string {
  return [
    // Every item of the key that does not run gives way to a newer one. A key that is ready at that level keeps its place.
    define(
      `${s}.replace_waiting(me bigint, kid bigint) RETURNS text[]`,
      `
DECLARE k ${s}.key; i record; ids text[] := '{}';
BEGIN
  SELECT * INTO k FROM ${s}.key WHERE id = kid;
  ${assertSettled("k")}
  FOR i IN
    DELETE FROM ${s}.item WHERE key = kid AND NOT (k.state = ${LEASED} AND NOT k.held AND level = k.level AND ord = k.ord)
    RETURNING level, ord, id, keep, attempt
  LOOP
    ids := ids || coalesce(i.id, ${s}.given_id(kid, i.level, i.ord));
    IF i.id IS NOT NULL THEN PERFORM ${s}.remember(k.queue, i.id, i.keep, 'replaced', i.attempt, NULL, NULL, NULL, NULL); END IF;
    UPDATE ${s}.key SET waiting = waiting - 1, lane[i.level + 1] = lane[i.level + 1] - 1 WHERE id = kid;
    PERFORM ${s}.count(me, k.queue, i.level, -1, 0, 0, 0);
  END LOOP;
  FOR i IN DELETE FROM ${s}.delayed WHERE queue = k.queue AND key = k.name AND counted RETURNING level, ord, id, keep, attempt LOOP
    ids := ids || coalesce(i.id, ${s}.given_id(kid, i.level, i.ord));
    IF i.id IS NOT NULL THEN PERFORM ${s}.remember(k.queue, i.id, i.keep, 'replaced', i.attempt, NULL, NULL, NULL, NULL); END IF;
    UPDATE ${s}.key SET delayed = delayed - 1 WHERE id = kid;
    PERFORM ${s}.count(me, k.queue, i.level, 0, -1, 0, 0);
  END LOOP;
  RETURN ids;
END`,
    ),

    define(
      `${s}.submit(me bigint, rings integer[], outcome_rings integer[], plain boolean, qs integer[], names text[], lvls integer[], ids text[], types text[], heads text[], bodies text[],
  byteas bytea[], delays bigint[], modes text[], key_limits bigint[], queue_limits bigint[], keeps bigint[])
RETURNS TABLE (n integer, code integer, id text, key text, level integer, at bigint, replaced text[])`,
      `
#variable_conflict use_column
DECLARE
  kids bigint[]; now bigint; k ${s}.key; i integer; had ${s}.receipt; total bigint; o bigint; given text; gone text[];
  opened integer := 0; fresh boolean; size integer; many integer := cardinality(names); ords bigint[];
  p_k bigint[]; p_c integer[]; p_first bigint[];
BEGIN
  IF cardinality(rings) + cardinality(outcome_rings) > 0 THEN PERFORM ${s}.ring(me, rings, outcome_rings); END IF;
  kids := ${s}.lock_keys(qs, names);
  now := ${NOW};
  -- What was due before, transactions that were committed before included, comes before what is submitted now.
  IF NOT plain THEN PERFORM ${s}.lock_counters(me, qs); END IF;
  IF EXISTS (SELECT FROM ${s}.delayed WHERE due <= now) THEN opened := ${s}.arrive_due(me, kids, now);
  ELSIF NOT plain THEN PERFORM ${s}.count_in_keys(me, kids);
  END IF;

  IF plain AND many = 1 AND lvls[1] >= 0 THEN
    -- One alone, which somebody may be waiting for: as few statements as it takes.
    SELECT * INTO k FROM ${s}.key x WHERE x.id = kids[1];
    SELECT coalesce(sum(c.total), 0) INTO total FROM ${s}.counter c WHERE c.queue = qs[1];
    IF total < queue_limits[1] AND k.waiting + k.delayed < key_limits[1] AND NOT (k.state IN (${READY}, ${BLOCKED}) AND k.level > lvls[1]) THEN
      o := nextval('${s}.number');
      INSERT INTO ${s}.item VALUES (kids[1], o, lvls[1], 0, 0, 0, now, NULL, types[1], heads[1], bodies[1], byteas[1]);
      IF k.state = ${IDLE} THEN
        UPDATE ${s}.key x SET state = ${READY}, level = lvls[1], place = o, since = now, waiting = 1, lane[lvls[1] + 1] = 1 WHERE x.id = kids[1];
        IF NOT k.paused AND NOT k.wanted THEN
          INSERT INTO ${s}.ready VALUES (qs[1], lvls[1], o, kids[1], now);
          opened := opened + 1;
        END IF;
      ELSE
        UPDATE ${s}.key x SET waiting = x.waiting + 1, lane[lvls[1] + 1] = x.lane[lvls[1] + 1] + 1 WHERE x.id = kids[1];
      END IF;
      ${countInPlace(s, { q: "qs[1]", level: "lvls[1]", waits: "1" })}
      n := 1; code := 0; id := ${s}.given_id(kids[1], lvls[1], o); key := NULL; level := lvls[1]; at := now; replaced := NULL;
      RETURN NEXT;
      IF opened > 0 THEN
        n := 0; code := CASE WHEN ${s}.wake(me, qs[1], 0, opened) THEN 1 ELSE 0 END; id := NULL; level := qs[1]; at := NULL;
        RETURN NEXT;
      END IF;
      RETURN;
    END IF;
  END IF;
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
    ${countInPlace(s, { q: "qs[1]", level: "lvls[1]", waits: "many" })}
    RETURN QUERY SELECT u.i::integer, 0, ${s}.given_id(u.kid, lvls[1], u.o), NULL::text, lvls[1], now, NULL::text[]
      FROM unnest(kids, ords) WITH ORDINALITY u(kid, o, i);
  ELSE
    FOR i IN 1 .. many LOOP
      given := ids[i];
      IF given IS NOT NULL THEN
        SELECT * INTO had FROM ${s}.receipt r WHERE r.queue = qs[i] AND r.id = given AND (r.expires IS NULL OR r.expires > now);
        IF FOUND THEN
          RETURN QUERY SELECT i, 1, given, had.key, had.level::integer, had.submitted, NULL::text[];
          CONTINUE;
        END IF;
      END IF;
      SELECT * INTO k FROM ${s}.key x WHERE x.id = kids[i];
      IF NOT FOUND THEN
        -- An earlier one of this batch was the last thing the key had, and it gave way.
        kids[i] := (${s}.lock_keys(ARRAY[qs[i]], ARRAY[names[i]]))[1];
        SELECT * INTO k FROM ${s}.key x WHERE x.id = kids[i];
      END IF;
      size := k.waiting + k.delayed;
      IF lvls[i] < 0 THEN
        RETURN QUERY SELECT i, 2, NULL, NULL, NULL::integer, now, NULL::text[]; CONTINUE;
      ELSIF modes[i] = 'strict' AND (k.state <> ${IDLE} OR size > 0) THEN
        RETURN QUERY SELECT i, 3, NULL, NULL, NULL::integer, now, NULL::text[]; CONTINUE;
      ELSIF coalesce(modes[i], 'fifo') = 'fifo' AND size >= key_limits[i] THEN
        RETURN QUERY SELECT i, 4, NULL, NULL, NULL::integer, now, NULL::text[]; CONTINUE;
      ELSIF NOT (coalesce(modes[i], 'fifo') = 'latest' AND size > 0) THEN
        SELECT coalesce(sum(c.total), 0) INTO total FROM ${s}.counter c WHERE c.queue = qs[i];
        IF total >= queue_limits[i] THEN
          RETURN QUERY SELECT i, 5, NULL, NULL, NULL::integer, now, NULL::text[]; CONTINUE;
        END IF;
      END IF;
      o := nextval('${s}.number');
      IF given IS NOT NULL THEN
        -- An expired one of the same id may still be there. One that another process writes now is waited for, but not for long: it may
        -- be a transaction of the application, which lasts, and this connection has other things to do.
        PERFORM set_config('lock_timeout', '${UNDECIDED_ID_MS}', true);
        INSERT INTO ${s}.receipt AS r (queue, id, key, level, submitted, ord)
        VALUES (qs[i], given, names[i], lvls[i], now, CASE WHEN delays[i] > 0 THEN -o ELSE o END)
        ON CONFLICT ON CONSTRAINT receipt_pkey DO UPDATE SET key = excluded.key, level = excluded.level, submitted = excluded.submitted,
          ord = excluded.ord, state = NULL, ended = NULL, expires = NULL, attempt = NULL, result_type = NULL, result = NULL,
          result_bytes = NULL, failure = NULL
        WHERE r.expires <= now;
        fresh := FOUND;
        PERFORM set_config('lock_timeout', '0', true);
        IF NOT fresh THEN
          SELECT * INTO had FROM ${s}.receipt r WHERE r.queue = qs[i] AND r.id = given;
          RETURN QUERY SELECT i, 1, given, had.key, had.level::integer, had.submitted, NULL::text[];
          CONTINUE;
        END IF;
      ELSIF keeps[i] > 0 OR delays[i] > 0 THEN
        given := ${s}.given_id(kids[i], lvls[i], o);
        INSERT INTO ${s}.receipt (queue, id, key, level, submitted, ord)
        VALUES (qs[i], given, names[i], lvls[i], now, CASE WHEN delays[i] > 0 THEN -o ELSE o END);
      END IF;
      gone := NULL;
      IF modes[i] = 'latest' AND size > 0 THEN gone := ${s}.replace_waiting(me, kids[i]); END IF;
      IF delays[i] > 0 THEN
        INSERT INTO ${s}.delayed VALUES (o, qs[i], names[i], lvls[i], 0, now + delays[i], true, false, 0, keeps[i], now, given, types[i],
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

    // Within a transaction of the application, which may last: it locks no key. The items arrive when it has been committed.
    defineForeign(
      `${s}.submit_within(entries text)
RETURNS TABLE (n integer, code integer, id text, key text, level integer, at bigint, replaced text[])`,
      `
#variable_conflict use_column
DECLARE
  now bigint := ${NOW}; i integer; o bigint; given text; had ${s}.receipt; size bigint; total bigint;
  qs integer[]; names text[]; lvls integer[]; ids text[]; types text[]; heads text[]; bodies text[]; byteas bytea[]; delays bigint[];
  modes text[]; key_limits bigint[]; queue_limits bigint[]; keeps bigint[];
BEGIN
  -- One text, because every library can send that.
  SELECT array_agg((e ->> 'queue')::integer), array_agg(e ->> 'key'), array_agg((e ->> 'level')::integer), array_agg(e ->> 'id'),
    array_agg(e ->> 'type'), array_agg(e ->> 'headers'), array_agg(e ->> 'text'), array_agg(decode(e ->> 'bytes', 'base64')),
    array_agg((e ->> 'delay')::bigint), array_agg(e ->> 'mode'), array_agg((e ->> 'keyLimit')::bigint),
    array_agg((e ->> 'queueLimit')::bigint), array_agg((e ->> 'keep')::bigint)
  INTO qs, names, lvls, ids, types, heads, bodies, byteas, delays, modes, key_limits, queue_limits, keeps
  FROM json_array_elements(entries::json) e;
  FOR i IN 1 .. cardinality(names) LOOP
    given := ids[i];
    o := nextval('${s}.number');
    IF given IS NOT NULL THEN
      SELECT * INTO had FROM ${s}.receipt r WHERE r.queue = qs[i] AND r.id = given AND (r.expires IS NULL OR r.expires > now);
      IF FOUND THEN
        RETURN QUERY SELECT i, 1, given, had.key, had.level::integer, had.submitted, NULL::text[];
        CONTINUE;
      END IF;
    END IF;
    IF lvls[i] < 0 THEN
      RETURN QUERY SELECT i, 2, NULL, NULL, NULL::integer, now, NULL::text[]; CONTINUE;
    END IF;
    SELECT x.waiting + x.delayed INTO size FROM ${s}.key x WHERE x.queue = qs[i] AND x.name = names[i];
    -- And what this transaction, or one that was just committed, has submitted before.
    size := coalesce(size, 0) + (SELECT count(*) FROM ${s}.delayed d WHERE d.queue = qs[i] AND d.key = names[i] AND NOT d.counted);
    IF coalesce(modes[i], 'fifo') = 'fifo' AND size >= key_limits[i] THEN
      RETURN QUERY SELECT i, 4, NULL, NULL, NULL::integer, now, NULL::text[]; CONTINUE;
    END IF;
    SELECT coalesce(sum(c.total), 0) INTO total FROM ${s}.counter c WHERE c.queue = qs[i];
    total := total + (SELECT count(*) FROM ${s}.delayed d WHERE d.queue = qs[i] AND NOT d.counted);
    IF total >= queue_limits[i] AND NOT (modes[i] = 'latest' AND size > 0) THEN
      RETURN QUERY SELECT i, 5, NULL, NULL, NULL::integer, now, NULL::text[]; CONTINUE;
    END IF;
    given := coalesce(given, '@' || to_hex(o));
    INSERT INTO ${s}.receipt AS r (queue, id, key, level, submitted, ord) VALUES (qs[i], given, names[i], lvls[i], now, -o)
    ON CONFLICT ON CONSTRAINT receipt_pkey DO UPDATE SET key = excluded.key, level = excluded.level, submitted = excluded.submitted,
      ord = excluded.ord, state = NULL, ended = NULL, expires = NULL, attempt = NULL, result_type = NULL, result = NULL,
      result_bytes = NULL, failure = NULL
    WHERE r.expires <= now;
    IF NOT FOUND THEN
      SELECT * INTO had FROM ${s}.receipt r WHERE r.queue = qs[i] AND r.id = given;
      RETURN QUERY SELECT i, 1, given, had.key, had.level::integer, had.submitted, NULL::text[];
      CONTINUE;
    END IF;
    INSERT INTO ${s}.delayed VALUES (o, qs[i], names[i], lvls[i], 0, now + coalesce(delays[i], 0), false, coalesce(modes[i] = 'latest', false), 0,
      keeps[i], now, given, types[i], heads[i], bodies[i], byteas[i]);
    -- PostgreSQL sends it when the transaction commits, and only then.
    PERFORM pg_notify('${channel}', 'work ' || qs[i]);
    RETURN QUERY SELECT i, 0, given, names[i], lvls[i], now, NULL::text[];
  END LOOP;
END`,
    ),
  ].join("");
}
