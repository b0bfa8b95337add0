import { STRICT_CHOICES_BETWEEN } from "../../../domain/level.ts";
import { MOST_TURN_MS } from "../../../engine/port.ts";
import { define, firstLane, LEASED, NOW, READY } from "./functions.ts";

/**
 * So many items are granted in a step, if that is more than one for each key. A run lasts 50 ms from when it was asked for: what takes longer to be handed out
 * is of no use when it arrives.
 */
const MOST_ITEMS = 2_048;

/**
 * Ends leases and hands out ready keys, in one transaction: a worker that has just finished an item of a key may go on with the key's next
 * one, which writes the key's row once instead of twice. What is simply done is dealt with as a set; other endings one by one.
 *
 * Rows that come back: 0 a grant, 1 a lease that was lost (its position), 2 a queue that has news, 3 a queue that has outcomes, 4 what the next claim
 * should know: the strict choices left, and the lowest place of each level; 5 an item that the lease of one of the grants covers behind its first.
 */
export function stepFunctions(s: string): string {
  return [
    // One that is not simply done. False: it was lost.
    define(
      `${s}.settle_one(me bigint, kid bigint, f bigint, ending text, delay bigint, why text, rtype text, rtext text, rbytes bytea) RETURNS integer`,
      `
DECLARE k ${s}.key; i ${s}.item; n bigint;
BEGIN
  SELECT * INTO k FROM ${s}.key WHERE id = kid;
  -- The one comparison of a lease: same fence, still leased, not run out (G2).
  IF NOT FOUND OR k.state <> ${LEASED} OR k.fence <> f OR k.at <= ${NOW} THEN RETURN -1; END IF;
  IF k.held THEN RETURN ${s}.let_go(me, k); END IF;
  IF k.alone > 0 AND ending NOT IN ('release', 'unbegun') THEN UPDATE ${s}.key SET alone = alone - 1 WHERE id = kid; END IF;
  IF k.cancel AND ending = 'unbegun' THEN
    UPDATE ${s}.item SET attempt = attempt - 1 WHERE key = kid AND level = k.level AND ord = k.ord;
    ending := 'release';
  END IF;
  IF k.cancel AND ending IN ('release', 'keep', 'yield') THEN RETURN ${s}.finish(me, k, 'cancelled', NULL, NULL, NULL, NULL); END IF;
  IF ending = 'release' THEN RETURN ${s}.give_back(me, k, 'released', 0, NULL); END IF;
  IF ending = 'unbegun' THEN RETURN ${s}.give_back(me, k, ending, 0, NULL); END IF;
  IF ending = 'keep' OR (ending = 'yield' AND delay = 0) THEN
    RETURN ${s}.give_back(me, k, 'failed', CASE WHEN delay > 0 THEN ${NOW} + delay ELSE 0 END, rtext);
  END IF;
  IF ending <> 'yield' THEN RETURN ${s}.finish(me, k, ending, rtype, rtext, rbytes, why); END IF;
  -- It lets others pass, and comes back to where it stood.
  DELETE FROM ${s}.item WHERE key = kid AND level = k.level AND ord = k.ord RETURNING * INTO i;
  n := nextval('${s}.number');
  INSERT INTO ${s}.delayed VALUES (n, k.queue, k.name, k.level, k.ord, ${NOW} + delay, true, false, i.attempt + 1, i.keep, i.submitted, i.id,
    i.type, i.headers, i.body, i.bytes, ${s}.add_attempt(i.tried, 'failed', i.attempt + 1, k.worker, rtext), i.losses);
  IF i.id IS NOT NULL THEN UPDATE ${s}.receipt SET ord = -n WHERE queue = k.queue AND id = i.id; END IF;
  UPDATE ${s}.key SET delayed = delayed + 1 WHERE id = kid;
  PERFORM ${s}.count(me, k.queue, k.level, 0, 1, -1, 0);
  PERFORM ${s}.let_go(me, k);
  RETURN 1;
END`,
    ),

    define(
      `${s}.step(me bigint, rings integer[], outcome_rings integer[],
  sizes integer[], names text[], hows text[], ended_whys text[], ended_rtypes text[], ended_rtexts text[], ended_rbytes bytea[],
  kids bigint[], fences bigint[], endings text[], delays bigint[], whys text[], rtypes text[], rtexts text[], rbytes bytea[],
  q integer, who text, most integer, lease bigint, patience bigint, choices integer, bounds bigint[], sleeps boolean, slept boolean, items integer, dues boolean)
RETURNS TABLE (kind integer, n bigint, key text, kid bigint, fence bigint, level integer, ord bigint, id text, type text, headers text,
  body text, bytes bytea, submitted bigint, attempt integer, losses integer)`,
      `
#variable_conflict use_column
DECLARE
  now bigint; locked_at bigint; spots bigint[]; i integer; r integer; c integer; x record; lvl integer; need integer; granted integer := 0; wait bigint; low bigint;
  done_k bigint[]; done_l integer[]; done_o bigint[]; done_q integer[]; done_f bigint[]; done_r tid[]; freed_q integer[]; freed_l integer[]; finished integer := 0;
  gone bigint[]; freed bigint[]; slow bigint[]; opened integer[] := '{}'; ended integer[] := '{}';
  firsts bigint[]; lows bigint[]; urgent integer; worst integer; takes integer[]; levels integer; halted boolean; passed boolean := false;
  g_k bigint[] := '{}'; g_r tid[] := '{}'; g_l integer[] := '{}'; g_f bigint[] := '{}'; g_go boolean[] := '{}'; g_t boolean[] := '{}';
  g_w boolean[] := '{}';
  c_k bigint[]; c_f bigint[]; c_t boolean[]; c_w boolean[]; c_r tid[]; c_l tid[];
  changed bigint[]; r_k bigint[]; r_id text[]; r_keep bigint[]; r_attempt integer[]; r_tried text[];
BEGIN
  IF cardinality(rings) + cardinality(outcome_rings) > 0 THEN PERFORM ${s}.ring(me, rings, outcome_rings); END IF;
  IF endings IS NOT NULL OR sizes IS NOT NULL THEN
    PERFORM 1 FROM (SELECT k.id FROM ${s}.key k WHERE k.id = ANY (kids) ORDER BY k.id FOR UPDATE) locked;
    PERFORM ${s}.lock_counters(me, array_remove(ARRAY(SELECT DISTINCT k.queue FROM ${s}.key k WHERE k.id = ANY (kids)) || q, NULL));
  END IF;
  IF sizes IS NOT NULL THEN
    SELECT z.changed, z.told INTO changed, ended FROM ${s}.end_runs(me, kids, fences, sizes, names, hows, ended_whys, ended_rtypes, ended_rtexts, ended_rbytes) z;
  END IF;
  IF endings IS NOT NULL THEN
    FOR i IN 1 .. cardinality(kids) LOOP
      CONTINUE WHEN endings[i] = 'done' AND rtypes[i] IS NULL AND whys[i] IS NULL;
      SELECT k.queue INTO r FROM ${s}.key k WHERE k.id = kids[i];
      c := ${s}.settle_one(me, kids[i], fences[i], CASE WHEN endings[i] = 'release' AND kids[i] = ANY (changed) THEN 'unbegun' ELSE endings[i] END, delays[i], whys[i], rtypes[i], rtexts[i], rbytes[i]);
      IF c < 0 THEN
        RETURN QUERY SELECT 1, i::bigint, NULL, NULL::bigint, NULL::bigint, NULL::integer, NULL::bigint, NULL, NULL, NULL, NULL, NULL::bytea, NULL::bigint, NULL::integer, NULL::integer;
        CONTINUE;
      END IF;
      IF c > 0 THEN opened := opened || r; END IF;
      ended := ended || r;
    END LOOP;
    -- The others are simply done. The caller knows the lost by where they stood.
    SELECT array_agg(u.k), array_agg(u.f), array_agg(u.i) INTO kids, fences, spots
    FROM unnest(kids, fences, endings, rtypes, whys) WITH ORDINALITY u(k, f, e, t, w, i) WHERE u.e = 'done' AND u.t IS NULL AND u.w IS NULL;
  END IF;
  -- Whoever has had to wait for a row has a later time than before: it is taken afterwards, because leases and timers are judged by it.
  now := ${NOW};
  IF q IS NOT NULL THEN
    SELECT cardinality(z.levels), z.paused INTO levels, halted FROM ${s}.queue z WHERE z.id = q;
    IF NOT FOUND THEN PERFORM ${s}.assert_queues(ARRAY[q]); END IF;
    need := CASE WHEN halted THEN 0 ELSE most END;
    -- The first of each level: since when it is ready, and its place.
    SELECT array_agg(z.since ORDER BY l), array_agg(z.place ORDER BY l), min(l) FILTER (WHERE z.since IS NOT NULL) INTO firsts, lows, urgent
    FROM generate_series(0, levels - 1) l LEFT JOIN LATERAL (
      SELECT w.since, w.place FROM ${s}.ready w WHERE w.queue = q AND w.level = l AND w.place > bounds[l + 1] ORDER BY w.place LIMIT 1) z ON true;
  ELSE
    need := 0;
  END IF;

  IF kids IS NOT NULL THEN
    -- The one comparison of a lease: same fence, still leased, not run out (G2). What is locked is counted first, so that the time is taken
    -- when nothing has to be waited for any more.
    WITH locked AS MATERIALIZED (
      SELECT k.id, k.queue, k.level, k.ord, k.held, k.wanted, k.paused, k.waiting, k.delayed, k.backoff, k.worker, k.streak, k.timer, k.floors,
        k.fence, k.at, k.spot, k.ctid AS tid, ${firstLane("k.lane")} AS next
      FROM ${s}.key k WHERE k.id = ANY (kids) AND k.fence = ANY (fences) AND k.state = ${LEASED} ORDER BY k.id FOR UPDATE),
    judged AS MATERIALIZED (SELECT ${NOW} AS at FROM (SELECT count(*) FROM locked) c)
    SELECT array_agg(y.id), array_agg(y.level), array_agg(y.ord), array_agg(y.queue), array_agg(y.fence), array_agg(y.spot),
      array_agg(y.id) FILTER (WHERE y.class = 0), array_agg(y.id) FILTER (WHERE y.class = 1), array_agg(y.id) FILTER (WHERE y.class = 3),
      array_agg(y.id) FILTER (WHERE y.class = 2), array_agg(y.tid) FILTER (WHERE y.class = 2), array_agg(y.next) FILTER (WHERE y.class = 2),
      array_agg(CASE WHEN y.next = y.level THEN y.ord ELSE y.floors[y.next + 1] END) FILTER (WHERE y.class = 2),
      array_agg(y.timer <= y.judged OR y.timer > y.judged + lease) FILTER (WHERE y.class = 2), array_agg(y.waiting > 1) FILTER (WHERE y.class = 2),
      array_agg(y.queue) FILTER (WHERE y.class = 1), array_agg(y.next) FILTER (WHERE y.class = 1), min(y.judged)
    INTO done_k, done_l, done_o, done_q, done_f, done_r, gone, freed, slow, g_k, g_r, g_l, g_f, g_t, g_w, freed_q, freed_l, locked_at
    FROM (
      SELECT z.*, j.at AS judged, CASE WHEN z.held OR z.wanted OR z.paused THEN 3
        WHEN z.waiting = 0 THEN CASE WHEN z.delayed = 0 THEN 0 ELSE 3 END
        WHEN z.backoff THEN 3
        WHEN z.queue = q AND NOT halted AND z.worker = who AND j.at - z.streak <= ${MOST_TURN_MS} AND z.next <= coalesce(urgent, 16) THEN 2
        ELSE 1 END AS class
      FROM judged j CROSS JOIN locked z WHERE z.at > j.at OFFSET 0) y;
    now := coalesce(locked_at, now);
    IF cardinality(g_k) > need THEN
      -- More of them could go on than were asked for.
      freed := freed || g_k[need + 1:]; freed_l := freed_l || g_l[need + 1:];
      freed_q := freed_q || array_fill(q, ARRAY[cardinality(g_k) - need]);
      g_k := g_k[:need]; g_r := g_r[:need]; g_l := g_l[:need]; g_f := g_f[:need]; g_t := g_t[:need]; g_w := g_w[:need];
    END IF;
    IF coalesce(cardinality(done_k), 0) < cardinality(kids) THEN
      RETURN QUERY SELECT 1, coalesce(spots[u.i], u.i), NULL, NULL::bigint, NULL::bigint, NULL::integer, NULL::bigint, NULL, NULL, NULL, NULL, NULL::bytea, NULL::bigint, NULL::integer, NULL::integer
        FROM unnest(fences) WITH ORDINALITY u(f, i) WHERE NOT coalesce(u.f = ANY (done_f), false);
    END IF;
    g_k := coalesce(g_k, '{}'); g_r := coalesce(g_r, '{}'); g_l := coalesce(g_l, '{}'); g_f := coalesce(g_f, '{}'); g_t := coalesce(g_t, '{}'); g_w := coalesce(g_w, '{}');
    g_go := array_fill(true, ARRAY[cardinality(g_k)]);
    IF done_k IS NOT NULL THEN
      IF q IS NULL OR NOT q = ALL (done_q) THEN PERFORM ${s}.lock_counters(me, array_remove(done_q || q, NULL)); END IF;
      IF slow IS NOT NULL THEN
        -- Those have a hold, a pause or a back-off about them, and are not simply done.
        FOR i IN 1 .. cardinality(done_k) LOOP
          CONTINUE WHEN NOT done_k[i] = ANY (slow);
          r := ${s}.settle_one(me, done_k[i], done_f[i], 'done', 0, NULL, NULL, NULL, NULL);
          IF r > 0 THEN opened := opened || done_q[i]; END IF;
          ended := ended || done_q[i];
        END LOOP;
      END IF;
      -- Where they were when they were handed out; the order is theirs alone, should something else be there now.
      WITH removed AS (
        DELETE FROM ${s}.item z WHERE z.ctid = ANY (done_r) AND z.ord = ANY (done_o) AND (slow IS NULL OR NOT z.key = ANY (slow))
        RETURNING z.key, z.id, z.keep, z.attempt, z.tried)
      SELECT array_agg(z.key) FILTER (WHERE z.id IS NOT NULL), array_agg(z.id) FILTER (WHERE z.id IS NOT NULL),
        array_agg(z.keep) FILTER (WHERE z.id IS NOT NULL), array_agg(z.attempt) FILTER (WHERE z.id IS NOT NULL),
        array_agg(z.tried) FILTER (WHERE z.id IS NOT NULL), count(*)
      INTO r_k, r_id, r_keep, r_attempt, r_tried, c FROM removed z;
      IF c + coalesce(cardinality(slow), 0) < cardinality(done_k) THEN
        -- Somebody has rewritten the table, as VACUUM FULL does. The array of one rules out a plan that goes through all items.
        WITH removed AS (
          DELETE FROM ${s}.item z USING unnest(done_k, done_l, done_o) d(k, l, o)
          WHERE z.key = ANY (ARRAY[d.k]) AND z.level = d.l AND z.ord = d.o AND (slow IS NULL OR NOT d.k = ANY (slow))
          RETURNING z.key, z.id, z.keep, z.attempt, z.tried)
        SELECT r_k || array_agg(z.key), r_id || array_agg(z.id), r_keep || array_agg(z.keep), r_attempt || array_agg(z.attempt),
          r_tried || array_agg(z.tried)
        INTO r_k, r_id, r_keep, r_attempt, r_tried FROM removed z WHERE z.id IS NOT NULL;
      END IF;
      FOR i IN 1 .. coalesce(cardinality(r_k), 0) LOOP
        r := done_q[array_position(done_k, r_k[i])];
        PERFORM ${s}.remember(r, r_id[i], r_keep[i], 'done', r_attempt[i] + 1, NULL, NULL, NULL, NULL, NULL, r_tried[i]);
        ended := ended || r;
      END LOOP;
      IF gone IS NOT NULL THEN
        DELETE FROM ${s}.key z WHERE z.id = ANY (gone);
      END IF;
      IF freed IS NOT NULL THEN
        WITH changed AS (
          UPDATE ${s}.key z SET state = ${READY}, level = ${firstLane("z.lane")}, place = nextval('${s}.number'), ord = 0, fence = 0, owner = 0,
            worker = NULL, progress = NULL, cancel = false, since = now, covered = 1, alone = greatest(0, z.alone - 1), floors[z.level + 1] = greatest(z.floors[z.level + 1], z.ord)
          WHERE z.id = ANY (freed) RETURNING z.queue, z.level, z.place, z.id)
        INSERT INTO ${s}.ready SELECT z.queue, z.level, z.place, z.id, now FROM changed z;
        opened := opened || freed_q;
        -- Those that are ready now may be wanted by this very claim.
        FOREACH lvl IN ARRAY freed_l LOOP
          IF lvl < levels THEN firsts[lvl + 1] := coalesce(firsts[lvl + 1], now); END IF;
        END LOOP;
      END IF;
      IF slow IS NULL AND q = ALL (done_q) THEN
        finished := cardinality(done_q);
      ELSE
        FOR x IN SELECT d.q, count(*)::integer AS c FROM unnest(done_q, done_k) d(q, k) WHERE slow IS NULL OR NOT d.k = ANY (slow) GROUP BY d.q LOOP
          PERFORM ${s}.count(me, x.q, 0, 0, 0, -x.c, 0);
        END LOOP;
      END IF;
    END IF;
  END IF;

  need := need - cardinality(g_k);
  IF need > 0 THEN
    -- Which level: the most urgent, except that one which has waited too long gets one choice in four.
    urgent := NULL; worst := NULL;
    takes := array_fill(0, ARRAY[levels]);
    FOR lvl IN 0 .. levels - 1 LOOP
      CONTINUE WHEN firsts[lvl + 1] IS NULL;
      IF urgent IS NULL THEN urgent := lvl;
      ELSIF now - firsts[lvl + 1] > patience AND (worst IS NULL OR firsts[lvl + 1] < firsts[worst + 1]) THEN worst := lvl;
      END IF;
    END LOOP;
    IF worst IS NULL THEN
      choices := ${STRICT_CHOICES_BETWEEN};
    ELSE
      FOR i IN 1 .. need LOOP
        IF choices > 0 THEN choices := choices - 1; takes[urgent + 1] := takes[urgent + 1] + 1;
        ELSE choices := ${STRICT_CHOICES_BETWEEN}; takes[worst + 1] := takes[worst + 1] + 1;
        END IF;
      END LOOP;
    END IF;
    FOR i IN 0 .. CASE WHEN worst IS NULL THEN levels - 1 ELSE 2 * levels - 1 END LOOP
      EXIT WHEN need = 0;
      lvl := i % levels;
      -- First round, if somebody was impatient: as chosen. Last round: whatever is left.
      r := CASE WHEN worst IS NOT NULL AND i < levels THEN least(need, takes[lvl + 1]) ELSE need END;
      CONTINUE WHEN firsts[lvl + 1] IS NULL OR r = 0;
      low := bounds[lvl + 1];
      WHILE r > 0 LOOP
        -- Those that somebody else has in hand are passed over; and those that he has taken meanwhile are not at their place any more.
        SELECT array_agg(y.id), array_agg(y.floors[lvl + 1]), array_agg(y.timer <= now OR y.timer > now + lease), array_agg(y.waiting > 1), array_agg(y.spot), array_agg(y.listed)
        INTO c_k, c_f, c_t, c_w, c_r, c_l FROM (
          SELECT k.id, k.floors, k.timer, k.waiting, k.ctid AS spot, z.listed FROM (
            SELECT w.key, w.place, w.ctid AS listed FROM ${s}.ready w WHERE w.queue = q AND w.level = lvl AND w.place > low ORDER BY w.place LIMIT r) z
          CROSS JOIN ${s}.key k WHERE k.id = ANY (ARRAY[z.key]) AND k.place = z.place AND k.state = ${READY} FOR UPDATE OF k SKIP LOCKED) y;
        IF c_k IS NOT NULL THEN
          -- Nobody touches their rows of the list while their own are locked.
          DELETE FROM ${s}.ready z WHERE z.ctid = ANY (c_l);
          g_k := g_k || c_k; g_r := g_r || c_r; g_f := g_f || c_f; g_t := g_t || c_t; g_w := g_w || c_w;
          g_l := g_l || array_fill(lvl, ARRAY[cardinality(c_k)]);
          g_go := g_go || array_fill(false, ARRAY[cardinality(c_k)]);
          need := need - cardinality(c_k);
          r := r - cardinality(c_k);
          EXIT WHEN r = 0;
        END IF;
        -- Were there as many as were looked for, some of them in other hands?
        SELECT count(*), max(y.place) INTO c, low FROM (
          SELECT w.place FROM ${s}.ready w WHERE w.queue = q AND w.level = lvl AND w.place > low ORDER BY w.place LIMIT r) y;
        passed := passed OR c > coalesce(cardinality(c_k), 0);
        EXIT WHEN c < r;
      END LOOP;
    END LOOP;
  END IF;

  IF cardinality(g_k) > 0 THEN
    items := least(items, greatest(1, ${MOST_ITEMS} / cardinality(g_k)));
    RETURN QUERY UPDATE ${s}.key k SET state = ${LEASED}, held = false, cancel = false, level = u.lvl, ord = z.ord, spot = z.spot, fence = nextval('${s}.number'),
        at = now + lease, since = now, streak = CASE WHEN u.go THEN k.streak ELSE now END, timer = CASE WHEN u.t THEN now + lease ELSE k.timer END,
        covered = CASE WHEN items > 1 AND z.attempt = 0 AND k.alone <= u.go::integer THEN 1 + (
            SELECT coalesce(min(y.i) FILTER (WHERE y.attempt > 0) - 1, count(*)) FROM (
              SELECT w.attempt, row_number() OVER (ORDER BY w.ord) AS i FROM ${s}.item w WHERE w.key = u.kid AND w.level = u.lvl AND w.ord > z.ord
                -- Where one that yielded comes back to, when places were changed (\`uncover\`), no run goes past.
                AND NOT (k.backoff AND k.delayed > 0 AND EXISTS (
                  SELECT FROM ${s}.delayed d WHERE d.queue = q AND d.key = k.name AND d.level = u.lvl AND d.ord BETWEEN z.ord AND w.ord))
              ORDER BY w.ord LIMIT items - 1) y) ELSE 1 END,
        alone = greatest(0, k.alone - u.go::integer),
        owner = me, worker = who, progress = NULL, waiting = k.waiting - 1, lane[u.lvl + 1] = k.lane[u.lvl + 1] - 1,
        floors[k.level + 1] = greatest(k.floors[k.level + 1], k.ord)
      FROM unnest(g_k, g_r, g_l, g_f, g_go, g_t) WITH ORDINALITY u(kid, spot, lvl, floor, go, t, n)
      CROSS JOIN LATERAL (
        SELECT w.ctid AS spot, w.ord, w.id, w.type, w.headers, w.body, w.bytes, w.submitted, w.attempt, w.losses FROM ${s}.item w
        WHERE w.key = u.kid AND w.level = u.lvl AND w.ord > u.floor ORDER BY w.ord LIMIT 1) z
      WHERE k.ctid = u.spot
      RETURNING 0, u.n, k.name, k.id, k.fence, u.lvl, z.ord, z.id, z.type, z.headers, z.body, z.bytes, z.submitted, z.attempt + 1, z.losses;
    GET DIAGNOSTICS granted = ROW_COUNT;
    IF granted < cardinality(g_k) THEN
      RAISE EXCEPTION 'The line of a ready key of queue % is broken.', q USING ERRCODE = 'data_corrupted';
    END IF;
    IF items > 1 AND true = ANY (g_w) THEN
      RETURN QUERY SELECT 5, NULL::bigint, k.name, k.id, k.fence, k.level::integer, z.ord, z.id, z.type, z.headers, z.body, z.bytes, z.submitted, 1, NULL::integer
        FROM ${s}.key k CROSS JOIN LATERAL (
          SELECT w.ord, w.id, w.type, w.headers, w.body, w.bytes, w.submitted FROM ${s}.item w
          WHERE w.key = k.id AND w.level = k.level AND w.ord > k.ord ORDER BY w.ord LIMIT k.covered - 1) z
        WHERE k.id = ANY (g_k) AND k.covered > 1;
    END IF;
    IF true = ANY (g_t) THEN
      INSERT INTO ${s}.timer SELECT now + lease, nextval('${s}.number'), array_agg(u.kid) FROM unnest(g_k, g_t) u(kid, t) WHERE u.t;
    END IF;
    IF g_l[1] = ALL (g_l) THEN
      PERFORM ${s}.count(me, q, g_l[1], -granted, 0, granted - finished, 0);
      finished := 0;
    ELSE
      FOR x IN SELECT u.l, count(*)::integer AS c FROM unnest(g_l) u(l) GROUP BY u.l LOOP
        PERFORM ${s}.count(me, q, x.l, -x.c, 0, x.c, 0);
      END LOOP;
    END IF;
    IF slept THEN DELETE FROM ${s}.sleeper z WHERE z.queue = q AND z.kind = 0 AND z.handle = me; END IF;
  ELSIF sleeps THEN
    PERFORM ${s}.sleep(me, q, 0, true);
  END IF;

  IF finished > 0 THEN
    PERFORM ${s}.count(me, q, 0, 0, 0, -finished, 0);
  END IF;
  IF cardinality(opened) > 0 THEN
    RETURN QUERY SELECT 2, u.q::bigint, NULL, CASE WHEN ${s}.wake(me, u.q, 0, u.c) THEN 1 ELSE 0 END::bigint, NULL::bigint, NULL::integer, u.c::bigint, NULL, NULL, NULL, NULL, NULL::bytea, NULL::bigint, NULL::integer, NULL::integer
      FROM (SELECT o.q, count(*)::integer AS c FROM unnest(opened) o(q) GROUP BY o.q) u;
  END IF;
  IF cardinality(ended) > 0 THEN
    RETURN QUERY SELECT 3, u.q::bigint, NULL, CASE WHEN ${s}.wake(me, u.q, 1, -1) THEN 1 ELSE 0 END::bigint, NULL::bigint, NULL::integer, NULL::bigint, NULL, NULL, NULL, NULL, NULL::bytea, NULL::bigint, NULL::integer, NULL::integer
      FROM (SELECT DISTINCT o.q FROM unnest(ended) o(q)) u;
  END IF;
  IF q IS NOT NULL THEN
    wait := -2;
    IF dues OR granted = 0 THEN
      wait := ${s}.due_in();
    END IF;
    -- Whoever has the others in hand may let go of them without a word: a sweep that found them as they should be.
    kind := 4; n := wait; ord := CASE WHEN passed AND granted = 0 THEN 1 ELSE 0 END; key := NULL; kid := choices; id := NULL; type := NULL; headers := NULL; body := NULL; bytes := NULL;
    FOR lvl IN 1 .. levels LOOP
      fence := lows[lvl];
      RETURN NEXT;
    END LOOP;
  END IF;
END`,
    ),

    // Says that somebody waits, or no longer.
    define(
      `${s}.sleep(me bigint, q integer, what integer, waits boolean) RETURNS void`,
      `
BEGIN
  IF waits THEN
    -- Where something else carries the wakes they say so again much more rarely, and nobody is told by name.
    INSERT INTO ${s}.sleeper VALUES (q, what, me, ${NOW} + CASE WHEN current_setting('baton.wake', true) = 'foreign' THEN 75000 ELSE 5000 END) ON CONFLICT (queue, kind, handle) DO UPDATE SET until = excluded.until;
  ELSE
    DELETE FROM ${s}.sleeper WHERE queue = q AND kind = what AND handle = me;
  END IF;
END`,
    ),
  ].join("");
}
