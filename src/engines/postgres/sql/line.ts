import { MOST_ATTEMPTS, RELEASED_LINE } from "../../../engine/attempts.ts";
import { BLOCKED, define, firstLane, IDLE, LEASED, NOW, QUEUE_GONE, READY } from "./functions.ts";

/** How long a key is kept for whoever waits to hold it: they hear of it in milliseconds, if they are still there. */
const KEPT_MS = 250;
/** More are told than there is work for: some of those who sleep may have died since they said so. */
const SPARE_SLEEPERS = 3;
/** A notification has room for 8,000 bytes, which is fewer than 500 numbers of handles; with more of them everybody is told. */
const MOST_NAMED = 300;
/** So that handles seldom wait for one another to count. */
export const SHARDS = 16;

/**
 * How items stand in line for a key, one key at a time. Every rule of order (G5, G8) is here and in `elect`; what is done to many keys at once
 * (`submit`, `step`) says the same with sets. Whoever calls one of these has locked the row of the key, and no row of `ready`, `item` or
 * `delayed` is touched without that lock.
 */
export function lineFunctions(s: string, channel: string): string {
  return [
    // Locks the rows of keys, which it makes if need be: first in the order of their names, and then in that of their ids, so that nobody waits
    // for one who waits for him.
    define(
      `${s}.lock_keys(qs integer[], names text[]) RETURNS bigint[]`,
      `
DECLARE ids bigint[]; had integer; wanted integer;
BEGIN
  LOOP
    SELECT array_agg(k.id ORDER BY u.i), count(DISTINCT k.id) INTO ids, wanted FROM unnest(qs, names) WITH ORDINALITY u(q, name, i)
    CROSS JOIN LATERAL (SELECT x.id FROM ${s}.key x WHERE x.queue = u.q AND x.name = u.name COLLATE "C" OFFSET 0) k;
    IF cardinality(ids) = cardinality(names) THEN
      PERFORM 1 FROM (SELECT x.id FROM ${s}.key x WHERE x.id = ANY (ids) ORDER BY x.id FOR UPDATE) locked;
      GET DIAGNOSTICS had = ROW_COUNT;
      -- Or somebody removed one at the same time.
      IF had = wanted THEN RETURN ids; END IF;
    ELSE
      INSERT INTO ${s}.key (id, queue, name, lane, floors)
      SELECT nextval('${s}.number'), d.q, d.name, array_fill(0, ARRAY[w.levels]), array_fill(0::bigint, ARRAY[w.levels])
      FROM (SELECT DISTINCT u.q, u.name COLLATE "C" AS name FROM unnest(qs, names) u(q, name) ORDER BY 1, 2) d
      CROSS JOIN LATERAL (SELECT cardinality(z.levels) AS levels FROM ${s}.queue z WHERE z.id = d.q OFFSET 0) w
      WHERE NOT EXISTS (SELECT FROM ${s}.key x WHERE x.queue = d.q AND x.name = d.name OFFSET 0) ON CONFLICT DO NOTHING;
      PERFORM ${s}.assert_queues(qs);
    END IF;
  END LOOP;
END`,
    ),

    define(
      `${s}.count(me bigint, q integer, lvl integer, waits integer, delays integer, runs integer, dies integer) RETURNS void`,
      `
BEGIN
  LOOP
    UPDATE ${s}.counter z SET total = z.total + waits + delays, delayed = z.delayed + delays, running = z.running + runs, dead = z.dead + dies,
      waiting[lvl + 1] = z.waiting[lvl + 1] + waits
    WHERE z.queue = q AND z.shard = me % ${SHARDS};
    IF FOUND THEN RETURN; END IF;
    INSERT INTO ${s}.counter (queue, shard, waiting)
    SELECT q, me % ${SHARDS}, array_fill(0::bigint, ARRAY[cardinality(levels)]) FROM ${s}.queue WHERE id = q FOR KEY SHARE ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN PERFORM ${s}.assert_queues(ARRAY[q]); END IF;
  END LOOP;
END`,
    ),

    // Whoever is about to count in several queues locks their counters in one order, so that nobody waits for one who waits for him.
    define(
      `${s}.lock_counters(me bigint, qs integer[]) RETURNS void`,
      `
BEGIN
  IF qs[1] = ALL (qs) THEN RETURN; END IF;
  PERFORM ${s}.count(me, d.q, 0, 0, 0, 0, 0) FROM (SELECT DISTINCT u.q FROM unnest(qs) u(q) ORDER BY 1) d;
END`,
    ),

    // Handles know the numbers of their queues by heart: one that is not there any more was deleted under them.
    define(
      `${s}.assert_queues(qs integer[]) RETURNS void`,
      `
DECLARE gone integer;
BEGIN
  SELECT u.q INTO gone FROM unnest(qs) u(q) WHERE NOT EXISTS (SELECT FROM ${s}.queue z WHERE z.id = u.q) LIMIT 1;
  IF FOUND THEN RAISE EXCEPTION 'The queue was deleted.' USING ERRCODE = '${QUEUE_GONE}', DETAIL = gone; END IF;
END`,
    ),

    // Signals go by NOTIFY, or to the caller, who has said that something else carries them.
    define(
      `${s}.tell(news text) RETURNS void`,
      `
BEGIN
  IF current_setting('baton.wake', true) = 'foreign' THEN RAISE NOTICE 'baton %', news;
  ELSE PERFORM pg_notify('${channel}', news);
  END IF;
END`,
    ),

    // Tells those in other processes who wait for this. False: nobody does.
    define(
      `${s}.wake(me bigint, q integer, what integer, many integer) RETURNS boolean`,
      `
DECLARE told bigint[]; news text;
BEGIN
  told := ARRAY(SELECT handle FROM ${s}.sleeper WHERE queue = q AND kind = what AND handle <> me AND until > ${NOW}
    ORDER BY until DESC LIMIT CASE WHEN many < 0 THEN ${MOST_NAMED} + 1 ELSE least(many + ${SPARE_SLEEPERS}, ${MOST_NAMED} + 1) END);
  IF cardinality(told) = 0 THEN RETURN false; END IF;
  news := CASE what WHEN 0 THEN 'work ' ELSE 'outcomes ' END || q;
  IF cardinality(told) <= ${MOST_NAMED} THEN news := news || ' ' || array_to_string(told, ',') || ' ' || many; END IF;
  PERFORM ${s}.tell(news);
  RETURN true;
END`,
    ),

    // After a commit: somebody may have gone to sleep just before it, unseen.
    define(
      `${s}.ring(me bigint, works integer[], outcomes integer[]) RETURNS void`,
      `
BEGIN
  PERFORM ${s}.wake(me, q, 0, n) FROM (SELECT q, count(*)::integer AS n FROM unnest(works) u(q) GROUP BY q) w;
  PERFORM ${s}.wake(me, q, 1, -1) FROM (SELECT DISTINCT q FROM unnest(outcomes) u(q)) o;
END`,
    ),

    // Gives a key without a lease its state: ready, blocked, or gone when it has nothing. 1 when somebody could want to know.
    define(
      `${s}.elect(kid bigint) RETURNS integer`,
      `
DECLARE k ${s}.key; lvl integer; head bigint := 0; now bigint := ${NOW}; p bigint;
BEGIN
  SELECT * INTO k FROM ${s}.key WHERE id = kid;
  IF NOT FOUND OR k.state = ${LEASED} THEN RETURN 0; END IF;
  lvl := ${firstLane("k.lane")};
  IF lvl IS NOT NULL AND k.backoff THEN
    SELECT i.due INTO head FROM ${s}.item i WHERE i.key = kid AND i.level = lvl AND i.ord > k.floors[lvl + 1] ORDER BY i.ord LIMIT 1;
  END IF;
  IF k.state = ${READY} THEN
    -- It stands where it stood.
    IF lvl = k.level AND head <= now THEN RETURN 0; END IF;
    DELETE FROM ${s}.ready WHERE queue = k.queue AND level = k.level AND place = k.place;
  END IF;
  IF lvl IS NULL THEN
    IF k.paused OR k.wanted OR k.delayed > 0 THEN
      UPDATE ${s}.key SET state = ${IDLE}, ord = 0, backoff = false WHERE id = kid;
    ELSE
      DELETE FROM ${s}.key WHERE id = kid;
    END IF;
    RETURN 0;
  END IF;
  IF head > now THEN
    UPDATE ${s}.key SET state = ${BLOCKED}, level = lvl, ord = 0, at = head WHERE id = kid;
    INSERT INTO ${s}.timer VALUES (head, nextval('${s}.number'), ARRAY[kid]);
    RETURN 1;
  END IF;
  p := nextval('${s}.number');
  UPDATE ${s}.key SET state = ${READY}, level = lvl, ord = 0, place = p, since = now WHERE id = kid;
  IF k.paused OR k.wanted THEN RETURN 0; END IF;
  INSERT INTO ${s}.ready VALUES (k.queue, lvl, p, kid, now);
  RETURN 1;
END`,
    ),

    // An item, which is in its place, joins the line.
    define(
      `${s}.arrive(me bigint, kid bigint, lvl integer, o bigint) RETURNS integer`,
      `
DECLARE k ${s}.key;
BEGIN
  UPDATE ${s}.key SET waiting = waiting + 1, lane[lvl + 1] = lane[lvl + 1] + 1, floors[lvl + 1] = least(floors[lvl + 1], o - 1),
    backoff = backoff OR (state = ${LEASED} AND level = lvl AND ord > o)
  WHERE id = kid RETURNING * INTO k;
  PERFORM ${s}.count(me, k.queue, lvl, 1, 0, 0, 0);
  IF k.state = ${IDLE} OR (k.state <> ${LEASED} AND lvl < k.level) THEN RETURN ${s}.elect(kid); END IF;
  RETURN 0;
END`,
    ),

    // The lease is over; what it was for was dealt with before.
    define(
      `${s}.let_go(me bigint, was ${s}.key) RETURNS integer`,
      `
DECLARE k ${s}.key;
BEGIN
  IF was.covered > 1 THEN PERFORM ${s}.uncover(me, was); END IF;
  UPDATE ${s}.key SET state = ${IDLE}, held = false, cancel = false, ord = 0, fence = 0, owner = 0, worker = NULL, progress = NULL,
    kept = CASE WHEN wanted THEN ${NOW} + ${KEPT_MS} ELSE 0 END
  WHERE id = was.id RETURNING * INTO k;
  IF k.wanted THEN
    INSERT INTO ${s}.timer VALUES (k.kept, nextval('${s}.number'), ARRAY[k.id]);
    PERFORM ${s}.tell('hold ' || k.queue);
  END IF;
  RETURN ${s}.elect(k.id);
END`,
    ),

    // The history of an item with one attempt more: what `addAttempt` does.
    define(
      `${s}.add_attempt(before text, how text, n integer, who text, brief text) RETURNS text`,
      `
DECLARE lines text[] := coalesce(string_to_array(before, E'\\n'), '{}');
BEGIN
  IF lines[cardinality(lines)] LIKE '${RELEASED_LINE}%' THEN lines := lines[:cardinality(lines) - 1]; END IF;
  lines := lines || ('{"end":"' || how || '","attempt":' || n || ',"at":' || ${NOW} || ',"worker":' || to_json(coalesce(who, ''))::text
    || coalesce(',"failure":' || brief, '') || '}');
  RETURN array_to_string(lines[greatest(1, cardinality(lines) - ${MOST_ATTEMPTS - 1}):], E'\\n');
END`,
    ),

    // The item that runs goes back to where it stood: it failed, was lost, or was released, which does not count. Nothing is noted of one that was not begun.
    define(
      `${s}.give_back(me bigint, k ${s}.key, how text, again bigint, brief text) RETURNS integer`,
      `
BEGIN
  UPDATE ${s}.item SET attempt = CASE WHEN how = 'released' THEN attempt ELSE attempt + 1 END, due = again,
    tried = ${s}.add_attempt(tried, how, attempt + 1, k.worker, brief), losses = CASE WHEN how = 'lost' THEN coalesce(losses, 0) + 1 ELSE losses END
  WHERE key = k.id AND level = k.level AND ord = k.ord AND how <> 'unbegun';
  UPDATE ${s}.key SET waiting = waiting + 1, lane[k.level + 1] = lane[k.level + 1] + 1, backoff = backoff OR again > 0,
    floors[k.level + 1] = least(floors[k.level + 1], k.ord - 1) WHERE id = k.id;
  PERFORM ${s}.count(me, k.queue, k.level, 1, 0, -1, 0);
  RETURN ${s}.let_go(me, k);
END`,
    ),

    // How a remembered item ended.
    define(
      `${s}.remember(q integer, item_id text, kept bigint, how text, tries integer, rtype text, rtext text, rbytes bytea, why text, lacks text, was text) RETURNS void`,
      `
DECLARE now bigint := ${NOW};
BEGIN
  UPDATE ${s}.receipt SET state = how, ended = now, attempt = tries, result_type = rtype, result = rtext, result_bytes = rbytes,
    failure = why, missing = lacks, tried = was, expires = CASE WHEN how = 'dead' THEN NULL ELSE now + kept END
  WHERE queue = q AND id = item_id;
END`,
    ),

    // The item that runs is over.
    define(
      `${s}.finish(me bigint, k ${s}.key, how text, rtype text, rtext text, rbytes bytea, why text) RETURNS integer`,
      `
DECLARE i ${s}.item; given text; died integer := 0; was text;
BEGIN
  DELETE FROM ${s}.item WHERE key = k.id AND level = k.level AND ord = k.ord RETURNING * INTO i;
  was := i.tried;
  IF how = 'dead' THEN
    died := 1;
    -- What is said of the attempt stands where a result would.
    was := ${s}.add_attempt(was, 'failed', i.attempt + 1, k.worker, rtext);
    rtext := NULL;
    given := coalesce(i.id, ${s}.given_id(k.id, k.level, k.ord));
    INSERT INTO ${s}.dead VALUES (nextval('${s}.number'), k.queue, given, k.name, k.level, i.attempt + 1, i.keep, i.submitted, ${NOW},
      why, i.id IS NOT NULL, i.type, i.headers, i.body, i.bytes, was);
  END IF;
  IF i.id IS NOT NULL THEN PERFORM ${s}.remember(k.queue, i.id, i.keep, how, i.attempt + 1, rtype, rtext, rbytes,
    CASE how WHEN 'dead' THEN why END, CASE how WHEN 'done' THEN why END, was); END IF;
  -- One that yielded its place may have come back to before where this one stood.
  UPDATE ${s}.key x SET floors[k.level + 1] = coalesce((SELECT z.ord - 1 FROM ${s}.item z
    WHERE z.key = k.id AND z.level = k.level AND z.ord > x.floors[k.level + 1] ORDER BY z.ord LIMIT 1), greatest(x.floors[k.level + 1], k.ord))
  WHERE x.id = k.id;
  PERFORM ${s}.count(me, k.queue, k.level, 0, 0, -1, died);
  RETURN ${s}.let_go(me, k);
END`,
    ),
  ].join("");
}

/**
 * The id of an item that was given none says where the item is. The cast to text makes it as immutable as it says it is, and so PostgreSQL puts
 * it into the expressions that use it; a call of it would take a seventh of the time of a submission.
 */
export function idFunction(s: string): string {
  return `
CREATE OR REPLACE FUNCTION ${s}.given_id(key bigint, level integer, ord bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN '@' || to_hex($1) || '-' || $2::text || '-' || to_hex($3);
`;
}
