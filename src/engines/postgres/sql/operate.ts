import { define, IDLE, LEASED, NOW, READY } from "./functions.ts";
import { lastCovered } from "./runs.ts";

const REVIVED_AT_A_TIME = 500;

/** Holds; and what operators do: cancel, pause, bring dead letters back. */
export function operateFunctions(s: string, channel: string): string {
  return [
    define(
      `${s}.hold(me bigint, q integer, name text, who text, lease bigint, waits boolean) RETURNS TABLE (kid bigint, fence bigint)`,
      `
#variable_conflict use_column
DECLARE k ${s}.key; now bigint; f bigint; found bigint;
BEGIN
  PERFORM ${s}.keep_queues(ARRAY[q]);
  found := (${s}.lock_keys(ARRAY[q], ARRAY[name]))[1];
  now := ${NOW};
  SELECT * INTO k FROM ${s}.key x WHERE x.id = found;
  IF k.state = ${LEASED} AND k.at <= now THEN
    PERFORM ${s}.expire(me, k);
    found := (${s}.lock_keys(ARRAY[q], ARRAY[name]))[1];
    SELECT * INTO k FROM ${s}.key x WHERE x.id = found;
  END IF;
  IF k.state = ${LEASED} THEN
    -- Somebody waits to hold it: when its lease ends, workers leave it alone for a moment.
    IF waits AND NOT k.wanted THEN UPDATE ${s}.key x SET wanted = true WHERE x.id = k.id; END IF;
    RETURN;
  END IF;
  IF k.state = ${READY} THEN DELETE FROM ${s}.ready r WHERE r.queue = k.queue AND r.level = k.level AND r.place = k.place; END IF;
  f := nextval('${s}.number');
  UPDATE ${s}.key x SET state = ${LEASED}, held = true, wanted = false, cancel = false, ord = 0, fence = f, at = now + lease, since = now,
    streak = 0, timer = now + lease, owner = me, worker = who, progress = NULL WHERE x.id = k.id;
  INSERT INTO ${s}.timer VALUES (now + lease, nextval('${s}.number'), ARRAY[k.id]);
  -- Others may wait to hold it too, and say so again when they hear of this.
  IF k.wanted THEN PERFORM ${s}.tell('hold ' || q); END IF;
  RETURN QUERY SELECT k.id, f;
END`,
    ),

    define(
      `${s}.want_no_more(me bigint, q integer, name text) RETURNS boolean`,
      `
DECLARE k ${s}.key; rung boolean := true;
BEGIN
  UPDATE ${s}.key x SET wanted = false WHERE x.queue = q AND x.name = want_no_more.name AND x.wanted RETURNING * INTO k;
  IF NOT FOUND THEN RETURN true; END IF;
  IF k.state <> ${LEASED} AND ${s}.relist(k.id) > 0 THEN rung := ${s}.wake(me, q, 0, 1); END IF;
  -- Others who wait for the same key say so again when they hear of it.
  PERFORM ${s}.tell('hold ' || q);
  RETURN rung;
END`,
    ),

    // Where an item is: its key, its level, its order, and below zero its number among the delayed. Nothing: it ended, or never was.
    define(
      `${s}.locate(q integer, item_id text) RETURNS TABLE (kid bigint, level integer, ord bigint)`,
      `
#variable_conflict use_column
DECLARE t ${s}.receipt; parts text[];
BEGIN
  SELECT * INTO t FROM ${s}.receipt r WHERE r.queue = q AND r.id = item_id AND r.state IS NULL;
  IF FOUND THEN
    RETURN QUERY SELECT k.id, t.level::integer, t.ord FROM ${s}.key k WHERE k.queue = q AND k.name = t.key;
    RETURN;
  END IF;
  parts := regexp_match(item_id, '^@([0-9a-f]{1,15})-([0-9]{1,2})-([0-9a-f]{1,15})$');
  IF parts IS NULL THEN RETURN; END IF;
  RETURN QUERY SELECT k.id, parts[2]::integer, coalesce(
      (SELECT i.ord FROM ${s}.item i WHERE i.key = k.id AND i.level = parts[2]::integer AND i.ord = w.ord AND i.id IS NULL),
      (SELECT -d.n FROM ${s}.delayed d WHERE d.queue = q AND d.key = k.name AND d.level = parts[2]::integer AND d.ord = w.ord AND d.id IS NULL))
    FROM ${s}.key k, (SELECT ('x' || lpad(parts[3], 16, '0'))::bit(64)::bigint AS ord) w
    WHERE k.id = ('x' || lpad(parts[1], 16, '0'))::bit(64)::bigint AND k.queue = q;
END`,
    ),

    define(
      `${s}.cancel(me bigint, q integer, item_id text) RETURNS TABLE (result text, rung boolean)`,
      `
#variable_conflict use_column
DECLARE the_key bigint; lvl integer; o bigint; k ${s}.key; i record; opened integer := 0; whose text;
BEGIN
  -- One that was submitted in a transaction, of which its key does not know yet.
  SELECT r.key INTO whose FROM ${s}.receipt r JOIN ${s}.delayed d ON d.n = -r.ord
  WHERE r.queue = q AND r.id = item_id AND r.state IS NULL AND NOT d.counted;
  IF FOUND THEN PERFORM ${s}.count_in_keys(me, ${s}.lock_keys(ARRAY[q], ARRAY[whose]), ${NOW}); END IF;
  -- The key's row is locked before its items are looked at; and where the item is may have changed meanwhile.
  whose := NULL;
  SELECT x.name INTO whose FROM ${s}.locate(q, item_id) w JOIN ${s}.key x ON x.id = w.kid;
  IF whose IS NOT NULL THEN
    PERFORM 1 FROM ${s}.key x WHERE x.queue = q AND x.name = whose FOR UPDATE;
    -- What ran waits again when its lease has run out, also when nobody has seen to it yet: there is no worker any more who could be asked.
    SELECT coalesce(sum(${s}.expire(me, x)), 0) INTO opened FROM ${s}.key x
    WHERE x.queue = q AND x.name = whose AND x.state = ${LEASED} AND x.at <= ${NOW};
    IF opened > 0 THEN PERFORM ${s}.wake(me, q, 1, -1); END IF;
    SELECT w.kid, w.level, w.ord INTO the_key, lvl, o FROM ${s}.locate(q, item_id) w WHERE w.ord IS NOT NULL;
  END IF;
  IF the_key IS NULL THEN
    RETURN QUERY SELECT CASE WHEN EXISTS (SELECT FROM ${s}.dead d WHERE d.queue = q AND d.id = item_id)
      OR EXISTS (SELECT FROM ${s}.receipt r WHERE r.queue = q AND r.id = item_id AND r.state IS NOT NULL AND (r.expires IS NULL OR r.expires > ${NOW}))
      THEN 'ended' ELSE 'missing' END, opened = 0 OR ${s}.wake(me, q, 0, opened);
    RETURN;
  END IF;
  SELECT * INTO k FROM ${s}.key x WHERE x.id = the_key;
  IF k.state = ${LEASED} AND NOT k.held AND k.level = lvl AND k.ord = o THEN
    UPDATE ${s}.key x SET cancel = true WHERE x.id = k.id;
    RETURN QUERY SELECT 'requested', true;
    RETURN;
  END IF;
  IF k.covered > 1 AND k.level = lvl AND o > k.ord AND o <= ${lastCovered(s, "k")} THEN
    UPDATE ${s}.item z SET cancel = true WHERE z.key = k.id AND z.level = lvl AND z.ord = o;
    UPDATE ${s}.key x SET backoff = true WHERE x.id = k.id;
    RETURN QUERY SELECT 'requested', true;
    RETURN;
  END IF;
  IF o < 0 THEN
    DELETE FROM ${s}.delayed d WHERE d.n = -o RETURNING d.id, d.keep, d.attempt, d.counted, d.tried INTO i;
    IF i.counted THEN
      UPDATE ${s}.key x SET delayed = x.delayed - 1 WHERE x.id = k.id;
      PERFORM ${s}.count(me, q, lvl, 0, -1, 0, 0);
    END IF;
  ELSE
    DELETE FROM ${s}.item z WHERE z.key = k.id AND z.level = lvl AND z.ord = o RETURNING z.id, z.keep, z.attempt, z.tried INTO i;
    UPDATE ${s}.key x SET waiting = x.waiting - 1, lane[lvl + 1] = x.lane[lvl + 1] - 1 WHERE x.id = k.id;
    PERFORM ${s}.count(me, q, lvl, -1, 0, 0, 0);
  END IF;
  IF i.id IS NOT NULL THEN PERFORM ${s}.remember(q, i.id, i.keep, 'cancelled', i.attempt, NULL, NULL, NULL, NULL, NULL, i.tried); END IF;
  -- If it was the head of a back-off, what stands behind it is free.
  opened := opened + ${s}.elect(k.id);
  PERFORM ${s}.wake(me, q, 1, -1);
  RETURN QUERY SELECT 'cancelled', opened = 0 OR ${s}.wake(me, q, 0, opened);
END`,
    ),

    define(
      `${s}.pause(me bigint, q integer, name text, stops boolean) RETURNS boolean`,
      `
DECLARE k ${s}.key; kid bigint;
BEGIN
  IF name IS NULL THEN
    UPDATE ${s}.queue SET paused = stops WHERE id = q AND paused <> stops;
    RETURN stops OR ${s}.wake(me, q, 0, -1);
  END IF;
  PERFORM ${s}.keep_queues(ARRAY[q]);
  kid := (${s}.lock_keys(ARRAY[q], ARRAY[name]))[1];
  SELECT * INTO k FROM ${s}.key WHERE id = kid;
  UPDATE ${s}.key SET paused = stops WHERE id = kid;
  IF stops THEN
    IF k.state = ${READY} THEN DELETE FROM ${s}.ready WHERE queue = q AND level = k.level AND place = k.place; END IF;
    RETURN true;
  END IF;
  IF k.paused THEN PERFORM ${s}.relist(kid); ELSIF k.state = ${IDLE} THEN PERFORM ${s}.elect(kid); END IF;
  RETURN ${s}.wake(me, q, 0, 1);
END`,
    ),

    // A step of it: up to a place, so that letters that die meanwhile are left for the next time.
    define(
      `${s}.revive(me bigint, q integer, ids text[], again boolean, up_to bigint) RETURNS TABLE (revived integer, last bigint, rung boolean)`,
      `
#variable_conflict use_column
DECLARE d ${s}.dead; kids bigint[]; kid bigint; o bigint; n integer := 0; names text[]; top bigint := coalesce(up_to, nextval('${s}.number')); places bigint[];
BEGIN
  SELECT array_agg(z.place), array_agg(z.key) INTO places, names FROM (
    SELECT x.place, x.key FROM ${s}.dead x WHERE x.queue = q AND x.place <= top AND (ids IS NULL OR x.id = ANY (ids))
    ORDER BY x.place LIMIT ${REVIVED_AT_A_TIME}) z;
  IF places IS NULL THEN RETURN QUERY SELECT 0, top, true; RETURN; END IF;
  IF again THEN PERFORM ${s}.lock_keys(array_fill(q, ARRAY[cardinality(names)]), names); END IF;
  FOR d IN SELECT x.* FROM ${s}.dead x WHERE x.place = ANY (places) ORDER BY x.place LOOP
    DELETE FROM ${s}.dead x WHERE x.place = d.place;
    CONTINUE WHEN NOT FOUND;
    n := n + 1;
    PERFORM ${s}.count(me, q, 0, 0, 0, 0, -1);
    IF NOT again THEN
      UPDATE ${s}.receipt r SET expires = ${NOW} + d.keep WHERE r.queue = q AND r.id = d.id;
      CONTINUE;
    END IF;
    kid := (${s}.lock_keys(ARRAY[q], ARRAY[d.key]))[1];
    o := nextval('${s}.number');
    INSERT INTO ${s}.receipt AS r (queue, id, key, level, submitted, ord) VALUES (q, d.id, d.key, d.level, d.submitted, o)
    ON CONFLICT ON CONSTRAINT receipt_pkey DO UPDATE SET ord = excluded.ord, state = NULL, ended = NULL, expires = NULL, attempt = NULL, failure = NULL, tried = NULL;
    INSERT INTO ${s}.item VALUES (kid, o, d.level, 0, 0, d.keep, d.submitted, d.id, d.type, d.headers, d.body, d.bytes, d.tried);
    PERFORM ${s}.arrive(me, kid, d.level, o);
  END LOOP;
  IF again THEN
    PERFORM ${s}.elect(x.id) FROM ${s}.key x WHERE x.queue = q AND x.name = ANY (names) AND x.state = ${IDLE};
  END IF;
  RETURN QUERY SELECT n, top, NOT again OR ${s}.wake(me, q, 0, n);
END`,
    ),

    // Changes a cell if it is at the version that is expected (0: not there).
    define(
      `${s}.write_cell(me bigint, cell_name text, expected bigint, new_value text, ttl bigint, tell text[], quiet boolean)
RETURNS TABLE (version bigint, rung boolean)`,
      `
#variable_conflict use_column
DECLARE now bigint := ${NOW}; v bigint; told text; heard boolean := false;
BEGIN
  IF expected > 0 THEN
    PERFORM 1 FROM ${s}.cell c WHERE c.name = cell_name FOR UPDATE;
    now := ${NOW};
    v := nextval('${s}.number');
    IF new_value IS NULL THEN
      DELETE FROM ${s}.cell c WHERE c.name = cell_name AND c.version = expected AND (c.expires IS NULL OR c.expires > now);
    ELSE
      UPDATE ${s}.cell c SET version = v, value = new_value, expires = now + ttl
      WHERE c.name = cell_name AND c.version = expected AND (c.expires IS NULL OR c.expires > now);
    END IF;
    IF NOT FOUND THEN RETURN QUERY SELECT NULL::bigint, true; RETURN; END IF;
  ELSIF new_value IS NULL THEN
    IF EXISTS (SELECT FROM ${s}.cell c WHERE c.name = cell_name AND (c.expires IS NULL OR c.expires > now)) THEN
      RETURN QUERY SELECT NULL::bigint, true; RETURN;
    END IF;
    v := nextval('${s}.number');
  ELSE
    -- The number is drawn when nobody else can write the cell any more.
    INSERT INTO ${s}.cell AS c VALUES (cell_name, 0, new_value, now + ttl)
    ON CONFLICT (name) DO UPDATE SET value = excluded.value, expires = excluded.expires WHERE c.expires <= ${NOW};
    IF NOT FOUND THEN RETURN QUERY SELECT NULL::bigint, true; RETURN; END IF;
    v := nextval('${s}.number');
    UPDATE ${s}.cell c SET version = v, expires = ${NOW} + ttl WHERE c.name = cell_name;
  END IF;
  IF EXISTS (SELECT FROM ${s}.sleeper z WHERE z.queue = 0 AND z.kind = 2 AND z.handle <> me AND z.until > ${NOW}) THEN
    heard := true;
    IF NOT quiet THEN PERFORM pg_notify('${channel}', 'cell ' || cell_name); END IF;
    FOREACH told IN ARRAY tell LOOP PERFORM pg_notify('${channel}', 'cell ' || told); END LOOP;
  END IF;
  RETURN QUERY SELECT v, heard;
END`,
    ),

    // After a commit: somebody may have begun to watch just before it, unseen.
    define(
      `${s}.ring_cells(me bigint, names text[]) RETURNS void`,
      `
BEGIN
  IF EXISTS (SELECT FROM ${s}.sleeper z WHERE z.queue = 0 AND z.kind = 2 AND z.handle <> me AND z.until > ${NOW}) THEN
    PERFORM pg_notify('${channel}', 'cell ' || u.name) FROM unnest(names) u(name);
  END IF;
END`,
    ),

    // What nobody asks for any more, a few at a time.
    define(
      `${s}.forget(most integer) RETURNS integer`,
      `
DECLARE now bigint := ${NOW}; a integer; b integer;
BEGIN
  DELETE FROM ${s}.receipt r WHERE r.ctid = ANY (ARRAY(
    SELECT x.ctid FROM ${s}.receipt x WHERE x.expires <= now ORDER BY x.expires LIMIT most FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS a = ROW_COUNT;
  DELETE FROM ${s}.cell c WHERE c.ctid = ANY (ARRAY(
    SELECT x.ctid FROM ${s}.cell x WHERE x.expires <= now ORDER BY x.expires LIMIT most FOR UPDATE SKIP LOCKED));
  GET DIAGNOSTICS b = ROW_COUNT;
  DELETE FROM ${s}.sleeper WHERE until < now;
  RETURN greatest(a, b);
END`,
    ),
  ].join("");
}
