import { answerKnownId, defineForeign, NOW } from "./functions.ts";

/**
 * Accepts items within a transaction of the application, which may last: it locks no key. The items arrive when it has been committed. The order of the
 * checks is that of `submit`.
 */
export function withinFunctions(s: string, channel: string): string {
  return defineForeign(
    `${s}.submit_within(entries text)
RETURNS TABLE (n integer, code integer, id text, key text, level integer, at bigint, replaced text[])`,
    `
#variable_conflict use_column
DECLARE
  now bigint := ${NOW}; i integer; g integer; h integer; o bigint; given text; had ${s}.receipt; x record;
  qs integer[]; names text[]; lvls integer[]; ids text[]; types text[]; heads text[]; bodies text[]; byteas bytea[]; delays bigint[];
  modes text[]; key_limits bigint[]; queue_limits bigint[]; keeps bigint[];
  gs integer[]; hs integer[]; sizes bigint[] := '{}'; behinds integer[] := '{}'; totals bigint[] := '{}'; ords bigint[]; made text[];
BEGIN
  -- One text, because every library can send that.
  SELECT array_agg((e ->> 'queue')::integer), array_agg(e ->> 'key'), array_agg((e ->> 'level')::integer), array_agg(e ->> 'id'),
    array_agg(e ->> 'type'), array_agg(e ->> 'headers'), array_agg(e ->> 'text'), array_agg(decode(e ->> 'bytes', 'base64')),
    array_agg((e ->> 'delay')::bigint), array_agg(e ->> 'mode'), array_agg((e ->> 'keyLimit')::bigint),
    array_agg((e ->> 'queueLimit')::bigint), array_agg((e ->> 'keep')::bigint)
  INTO qs, names, lvls, ids, types, heads, bodies, byteas, delays, modes, key_limits, queue_limits, keeps
  FROM json_array_elements(entries::json) e;
  -- A queue is not deleted before this transaction has ended; and nothing else shows that items are on their way to it.
  PERFORM ${s}.keep_queues(ARRAY(SELECT DISTINCT u.q FROM unnest(qs) u(q)));
  -- How many each key has and each queue, and what this transaction, or one that was just committed, has submitted before: looked up once for each.
  SELECT array_agg(y.g ORDER BY y.i), array_agg(y.h ORDER BY y.i) INTO gs, hs FROM (
    SELECT u.i, dense_rank() OVER (ORDER BY u.q, u.name COLLATE "C")::integer AS g, dense_rank() OVER (ORDER BY u.q)::integer AS h
    FROM unnest(qs, names) WITH ORDINALITY u(q, name, i)) y;
  FOR x IN
    SELECT u.*, k.waiting + k.delayed AS size, k.covered - 1 AS behind FROM (
      SELECT u.g, u.q, u.name, min(u.l) AS room, count(*) AS c FROM unnest(gs, qs, names, key_limits) u(g, q, name, l) GROUP BY u.g, u.q, u.name) u
    LEFT JOIN LATERAL (SELECT * FROM ${s}.key y WHERE y.queue = u.q AND y.name = u.name OFFSET 0) k ON true ORDER BY u.g
  LOOP
    sizes[x.g] := coalesce(x.size, 0);
    behinds[x.g] := coalesce(x.behind, 0);
    sizes[x.g] := sizes[x.g] + ${s}.uncounted(x.q, x.name, x.c, x.room - sizes[x.g]);
  END LOOP;
  FOR x IN
    SELECT u.h, u.q, min(u.l) AS room, count(*) AS c, (SELECT coalesce(sum(y.total), 0)::bigint FROM ${s}.counter y WHERE y.queue = u.q) AS total
    FROM unnest(hs, qs, queue_limits) u(h, q, l) GROUP BY u.h, u.q ORDER BY u.h
  LOOP
    totals[x.h] := x.total + ${s}.uncounted(x.q, NULL, x.c, x.room - x.total);
  END LOOP;
  ords := array_fill(NULL::bigint, ARRAY[cardinality(names)]);
  made := array_fill(NULL::text, ARRAY[cardinality(names)]);
  FOR i IN 1 .. cardinality(names) LOOP
    given := ids[i]; g := gs[i]; h := hs[i];
    ${answerKnownId(s)}
    IF lvls[i] < 0 THEN
      RETURN QUERY SELECT i, 2, NULL, NULL, NULL::integer, now, NULL::text[]; CONTINUE;
    ELSIF coalesce(modes[i], 'fifo') = 'fifo' AND sizes[g] >= key_limits[i] THEN
      RETURN QUERY SELECT i, 4, NULL, NULL, NULL::integer, now, NULL::text[]; CONTINUE;
    ELSIF totals[h] >= queue_limits[i] AND NOT (coalesce(modes[i], 'fifo') = 'latest' AND sizes[g] > behinds[g]) THEN
      RETURN QUERY SELECT i, 5, NULL, NULL, NULL::integer, now, NULL::text[]; CONTINUE;
    END IF;
    o := nextval('${s}.number');
    IF given IS NOT NULL THEN
      INSERT INTO ${s}.receipt AS r (queue, id, key, level, submitted, ord) VALUES (qs[i], given, names[i], lvls[i], now, -o)
      ON CONFLICT ON CONSTRAINT receipt_pkey DO UPDATE SET key = excluded.key, level = excluded.level, submitted = excluded.submitted,
        ord = excluded.ord, state = NULL, ended = NULL, expires = NULL, attempt = NULL, result_type = NULL, result = NULL,
        result_bytes = NULL, failure = NULL, missing = NULL, tried = NULL
      WHERE r.expires <= now;
      IF NOT FOUND THEN
        SELECT * INTO had FROM ${s}.receipt r WHERE r.queue = qs[i] AND r.id = given;
        RETURN QUERY SELECT i, 1, given, had.key, had.level::integer, had.submitted, NULL::text[];
        CONTINUE;
      END IF;
    END IF;
    sizes[g] := sizes[g] + 1; totals[h] := totals[h] + 1;
    ords[i] := o; made[i] := coalesce(given, '@' || to_hex(o));
  END LOOP;
  INSERT INTO ${s}.receipt (queue, id, key, level, submitted, ord)
  SELECT u.q, u.made, u.name, u.l, now, -u.o FROM unnest(qs, ids, names, lvls, ords, made) u(q, id, name, l, o, made) WHERE u.o IS NOT NULL AND u.id IS NULL;
  INSERT INTO ${s}.delayed
  SELECT u.o, u.q, u.name, u.l, 0, now + coalesce(u.d, 0), false, coalesce(u.m = 'latest', false), 0, u.k, now, u.made, u.t, u.h, u.b, u.y
  FROM unnest(ords, qs, names, lvls, delays, modes, keeps, made, types, heads, bodies, byteas) u(o, q, name, l, d, m, k, made, t, h, b, y) WHERE u.o IS NOT NULL;
  -- PostgreSQL sends it when the transaction commits, and only then.
  PERFORM pg_notify('${channel}', 'work ' || w.q) FROM (SELECT DISTINCT u.q FROM unnest(qs, ords) u(q, o) WHERE u.o IS NOT NULL) w;
  RETURN QUERY SELECT u.i::integer, 0, u.made, u.name, u.l, now, NULL::text[] FROM unnest(ords, made, names, lvls) WITH ORDINALITY u(o, made, name, l, i) WHERE u.o IS NOT NULL;
END`,
  );
}
