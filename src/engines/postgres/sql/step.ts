import { define, firstLane, LEASED, NOW, READY } from "./functions.ts";

/** How long a worker may go on with one key while others are ready: too short to be felt by those that wait. */
const LONGEST_STREAK_MS = 20;
/** After so many choices that were strict, one may go to a level that has waited too long (see `LevelChooser`). */
const STRICT_CHOICES_BETWEEN = 3;

/**
 * Ends leases and hands out ready keys, in one transaction: a worker that has just finished an item of a key may go on with the key's next
 * one, which writes the key's row once instead of twice. What is simply done is dealt with as a set; other endings one by one.
 *
 * Rows that come back: 0 a grant, 1 a lease that was lost (its position), 2 a queue that has news, 3 a queue that has outcomes, 4 what the next claim
 * should know: the strict choices left, and the lowest place of each level.
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
  IF k.held THEN RETURN ${s}.let_go(kid); END IF;
  IF k.cancel AND ending IN ('release', 'keep', 'yield') THEN RETURN ${s}.finish(me, k, 'cancelled', NULL, NULL, NULL, why); END IF;
  IF ending = 'release' THEN RETURN ${s}.give_back(me, k, 0, 0); END IF;
  IF ending = 'keep' OR (ending = 'yield' AND delay = 0) THEN
    RETURN ${s}.give_back(me, k, 1, CASE WHEN delay > 0 THEN ${NOW} + delay ELSE 0 END);
  END IF;
  IF ending <> 'yield' THEN RETURN ${s}.finish(me, k, ending, rtype, rtext, rbytes, why); END IF;
  -- It lets others pass, and comes back to where it stood.
  DELETE FROM ${s}.item WHERE key = kid AND level = k.level AND ord = k.ord RETURNING * INTO i;
  n := nextval('${s}.number');
  INSERT INTO ${s}.delayed VALUES (n, k.queue, k.name, k.level, k.ord, ${NOW} + delay, true, false, i.attempt + 1, i.keep, i.submitted, i.id,
    i.type, i.headers, i.body, i.bytes);
  IF i.id IS NOT NULL THEN UPDATE ${s}.receipt SET ord = -n WHERE queue = k.queue AND id = i.id; END IF;
  UPDATE ${s}.key SET delayed = delayed + 1 WHERE id = kid;
  PERFORM ${s}.count(me, k.queue, k.level, 0, 1, -1, 0);
  PERFORM ${s}.let_go(kid);
  RETURN 1;
END`,
    ),

    define(
      `${s}.step(me bigint, rings integer[], outcome_rings integer[],
  kids bigint[], fences bigint[], endings text[], delays bigint[], whys text[], rtypes text[], rtexts text[], rbytes bytea[],
  q integer, who text, most integer, lease bigint, patience bigint, choices integer, bounds bigint[], sleeps boolean, slept boolean)
RETURNS TABLE (kind integer, n bigint, key text, kid bigint, fence bigint, level integer, ord bigint, id text, type text, headers text,
  body text, bytes bytea, submitted bigint, attempt integer)`,
      `
#variable_conflict use_column
DECLARE
  now bigint; i integer; r integer; c integer; x record; lvl integer; need integer; granted integer := 0; f0 bigint; wait bigint;
  done_k bigint[]; done_l integer[]; done_o bigint[]; done_q integer[]; done_i integer[];
  gone bigint[]; freed bigint[]; slow bigint[]; opened integer[] := '{}'; ended integer[] := '{}';
  firsts bigint[]; lows bigint[]; urgent integer; worst integer; takes integer[]; levels integer; halted boolean;
  g_k bigint[] := '{}'; g_l integer[] := '{}'; g_f bigint[] := '{}'; g_go boolean[] := '{}'; g_t boolean[] := '{}';
  c_k bigint[]; c_f bigint[]; c_t boolean[]; c_p bigint[];
BEGIN
  IF cardinality(rings) + cardinality(outcome_rings) > 0 THEN PERFORM ${s}.ring(me, rings, outcome_rings); END IF;
  now := ${NOW};
  IF q IS NOT NULL THEN
    SELECT cardinality(z.levels), z.paused INTO levels, halted FROM ${s}.queue z WHERE z.id = q;
    need := CASE WHEN halted THEN 0 ELSE most END;
    -- The first of each level: since when it is ready, and its place.
    FOR lvl IN 0 .. levels - 1 LOOP
      SELECT z.since, z.place INTO x FROM ${s}.ready z WHERE z.queue = q AND z.level = lvl AND z.place > bounds[lvl + 1] ORDER BY z.place LIMIT 1;
      firsts[lvl + 1] := x.since;
      lows[lvl + 1] := x.place;
      IF urgent IS NULL AND x.since IS NOT NULL THEN urgent := lvl; END IF;
    END LOOP;
  ELSE
    need := 0;
  END IF;

  IF kids IS NOT NULL AND endings IS NULL THEN
    -- The one comparison of a lease: same fence, still leased, not run out (G2).
    SELECT array_agg(y.id), array_agg(y.level), array_agg(y.ord), array_agg(y.queue), array_agg(y.i),
      array_agg(y.id) FILTER (WHERE y.class = 0), array_agg(y.id) FILTER (WHERE y.class = 1), array_agg(y.id) FILTER (WHERE y.class = 3),
      array_agg(y.id) FILTER (WHERE y.class = 2), array_agg(y.next) FILTER (WHERE y.class = 2),
      array_agg(CASE WHEN y.next = y.level THEN y.ord ELSE y.floor END) FILTER (WHERE y.class = 2),
      array_agg(y.timer <= now OR y.timer > now + lease) FILTER (WHERE y.class = 2)
    INTO done_k, done_l, done_o, done_q, done_i, gone, freed, slow, g_k, g_l, g_f, g_t
    FROM (
      SELECT z.*, CASE WHEN z.held OR z.wanted OR z.paused THEN 3
        WHEN z.waiting = 0 THEN CASE WHEN z.delayed = 0 THEN 0 ELSE 3 END
        WHEN z.backoff THEN 3
        WHEN z.queue = q AND NOT halted AND z.worker = who AND now - z.streak <= ${LONGEST_STREAK_MS} AND z.next <= coalesce(urgent, 16)
          AND row_number() OVER (ORDER BY z.queue = q AND z.waiting > 0 AND NOT z.backoff DESC, z.i) <= need THEN 2
        ELSE 1 END AS class, z.floors[z.next + 1] AS floor
      FROM (
        SELECT k.id, k.queue, k.level, k.ord, k.held, k.wanted, k.paused, k.waiting, k.delayed, k.backoff, k.worker, k.streak, k.timer, k.floors,
          u.i::integer AS i, ${firstLane("k.lane")} AS next
        FROM unnest(kids, fences) WITH ORDINALITY u(kid, fence, i) JOIN ${s}.key k ON k.id = u.kid
        WHERE k.fence = u.fence AND k.state = ${LEASED} AND k.at > now ORDER BY k.id FOR UPDATE OF k) z) y;
    IF coalesce(cardinality(done_k), 0) < cardinality(kids) THEN
      RETURN QUERY SELECT 1, u.i, NULL, NULL::bigint, NULL::bigint, NULL::integer, NULL::bigint, NULL, NULL, NULL, NULL, NULL::bytea, NULL::bigint, NULL::integer
        FROM unnest(kids) WITH ORDINALITY u(kid, i) WHERE NOT coalesce(u.i::integer = ANY (done_i), false);
    END IF;
    g_k := coalesce(g_k, '{}'); g_l := coalesce(g_l, '{}'); g_f := coalesce(g_f, '{}'); g_t := coalesce(g_t, '{}');
    g_go := array_fill(true, ARRAY[cardinality(g_k)]);
    IF done_k IS NOT NULL THEN
      IF slow IS NOT NULL THEN
        -- Those have a hold, a pause or a back-off about them, and are not simply done.
        FOR i IN 1 .. cardinality(done_k) LOOP
          CONTINUE WHEN NOT done_k[i] = ANY (slow);
          r := ${s}.settle_one(me, done_k[i], fences[done_i[i]], 'done', 0, NULL, NULL, NULL, NULL);
          IF r > 0 THEN opened := opened || done_q[i]; END IF;
          ended := ended || done_q[i];
        END LOOP;
      END IF;
      WITH removed AS (
        DELETE FROM ${s}.item z USING unnest(done_k, done_l, done_o, done_q) d(k, l, o, q)
        WHERE z.key = d.k AND z.level = d.l AND z.ord = d.o AND (slow IS NULL OR NOT d.k = ANY (slow)) RETURNING d.q, z.id, z.keep, z.attempt)
      UPDATE ${s}.receipt t SET state = 'done', ended = now, expires = now + d.keep, attempt = d.attempt + 1
      FROM removed d WHERE d.id IS NOT NULL AND t.queue = d.q AND t.id = d.id;
      IF FOUND THEN ended := ended || done_q; END IF;
      IF gone IS NOT NULL THEN
        DELETE FROM ${s}.key z USING unnest(gone) d(k) WHERE z.id = d.k;
      END IF;
      IF freed IS NOT NULL THEN
        WITH changed AS (
          UPDATE ${s}.key z SET state = ${READY}, level = ${firstLane("z.lane")}, place = nextval('${s}.number'), ord = 0, fence = 0, owner = 0,
            worker = NULL, progress = NULL, cancel = false, since = now, floors[z.level + 1] = greatest(z.floors[z.level + 1], z.ord)
          FROM unnest(freed) d(k) WHERE z.id = d.k RETURNING z.queue, z.level, z.place, z.id)
        INSERT INTO ${s}.ready SELECT z.queue, z.level, z.place, z.id, now FROM changed z;
        SELECT opened || array_agg(z.queue) INTO opened FROM unnest(freed) d(k) JOIN ${s}.key z ON z.id = d.k;
        -- Those that are ready now may be wanted by this very claim.
        FOR lvl IN 0 .. coalesce(levels, 0) - 1 LOOP
          CONTINUE WHEN firsts[lvl + 1] IS NOT NULL;
          SELECT z.since, z.place INTO x FROM ${s}.ready z WHERE z.queue = q AND z.level = lvl AND z.place > bounds[lvl + 1] ORDER BY z.place LIMIT 1;
          firsts[lvl + 1] := x.since;
        END LOOP;
      END IF;
      FOR x IN SELECT d.q, count(*)::integer AS c FROM unnest(done_q, done_k) d(q, k) WHERE slow IS NULL OR NOT d.k = ANY (slow) GROUP BY d.q LOOP
        PERFORM ${s}.count(me, x.q, 0, 0, 0, -x.c, 0);
      END LOOP;
    END IF;
  ELSIF kids IS NOT NULL THEN
    PERFORM 1 FROM (SELECT k.id FROM unnest(kids) u(kid) JOIN ${s}.key k ON k.id = u.kid ORDER BY k.id FOR UPDATE OF k) locked;
    FOR i IN 1 .. cardinality(kids) LOOP
      SELECT k.queue INTO r FROM ${s}.key k WHERE k.id = kids[i];
      c := ${s}.settle_one(me, kids[i], fences[i], endings[i], delays[i], whys[i], rtypes[i], rtexts[i], rbytes[i]);
      IF c < 0 THEN
        RETURN QUERY SELECT 1, i::bigint, NULL, NULL::bigint, NULL::bigint, NULL::integer, NULL::bigint, NULL, NULL, NULL, NULL, NULL::bytea, NULL::bigint, NULL::integer;
        CONTINUE;
      END IF;
      IF c > 0 THEN opened := opened || r; END IF;
      ended := ended || r;
    END LOOP;
    FOR lvl IN 0 .. coalesce(levels, 0) - 1 LOOP
      SELECT z.since INTO x FROM ${s}.ready z WHERE z.queue = q AND z.level = lvl AND z.place > bounds[lvl + 1] ORDER BY z.place LIMIT 1;
      firsts[lvl + 1] := x.since;
    END LOOP;
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
      SELECT array_agg(y.id), array_agg(y.floor), array_agg(y.t), array_agg(y.place) INTO c_k, c_f, c_t, c_p FROM (
        SELECT k.id, k.floors[lvl + 1] AS floor, k.timer <= now OR k.timer > now + lease AS t, z.place
        FROM ${s}.ready z JOIN ${s}.key k ON k.id = z.key AND k.state = ${READY} AND k.place = z.place
        WHERE z.queue = q AND z.level = lvl AND z.place > bounds[lvl + 1] AND NOT z.key = ANY (g_k)
        ORDER BY z.place LIMIT r FOR UPDATE OF k SKIP LOCKED) y;
      CONTINUE WHEN c_k IS NULL;
      DELETE FROM ${s}.ready z USING unnest(c_p) p(place) WHERE z.queue = q AND z.level = lvl AND z.place = p.place;
      c := cardinality(c_k);
      g_k := g_k || c_k; g_f := g_f || c_f; g_t := g_t || c_t;
      g_l := g_l || array_fill(lvl, ARRAY[c]);
      g_go := g_go || array_fill(false, ARRAY[c]);
      need := need - c;
    END LOOP;
  END IF;

  IF cardinality(g_k) > 0 THEN
    f0 := nextval('${s}.number');
    RETURN QUERY
    UPDATE ${s}.key k SET state = ${LEASED}, held = false, cancel = false, level = y.level, ord = y.ord, fence = nextval('${s}.number'),
      at = now + lease, since = now, streak = CASE WHEN y.go THEN k.streak ELSE now END, timer = CASE WHEN y.t THEN now + lease ELSE k.timer END,
      owner = me, worker = who, progress = NULL, waiting = k.waiting - 1, lane[y.level + 1] = k.lane[y.level + 1] - 1,
      floors[k.level + 1] = greatest(k.floors[k.level + 1], k.ord)
    FROM (
      SELECT u.n, u.kid, u.go, u.t, z.* FROM unnest(g_k, g_l, g_f, g_go, g_t) WITH ORDINALITY u(kid, lvl, floor, go, t, n)
      CROSS JOIN LATERAL (SELECT * FROM ${s}.item z WHERE z.key = u.kid AND z.level = u.lvl AND z.ord > u.floor ORDER BY z.ord LIMIT 1) z
      WHERE z.due <= now OFFSET 0) y
    WHERE k.id = y.kid
    RETURNING 0, y.n, k.name, k.id, k.fence, k.level::integer, k.ord, y.id, y.type, y.headers, y.body, y.bytes, y.submitted, y.attempt + 1;
    GET DIAGNOSTICS granted = ROW_COUNT;
    IF granted < cardinality(g_k) THEN
      RAISE EXCEPTION 'The line of a ready key of queue % is broken.', q USING ERRCODE = 'data_corrupted';
    END IF;
    c_k := NULL;
    SELECT array_agg(u.kid) INTO c_k FROM unnest(g_k, g_t) u(kid, t) WHERE u.t;
    IF c_k IS NOT NULL THEN INSERT INTO ${s}.timer VALUES (now + lease, nextval('${s}.number'), c_k); END IF;
    FOR x IN SELECT u.l, count(*)::integer AS c FROM unnest(g_l) u(l) GROUP BY u.l LOOP
      PERFORM ${s}.count(me, q, x.l, -x.c, 0, x.c, 0);
    END LOOP;
    IF slept THEN DELETE FROM ${s}.sleeper z WHERE z.queue = q AND z.kind = 0 AND z.handle = me; END IF;
  ELSIF sleeps THEN
    PERFORM ${s}.sleep(me, q, 0, true);
  END IF;

  IF cardinality(opened) > 0 THEN
    RETURN QUERY SELECT 2, u.q::bigint, NULL, CASE WHEN ${s}.wake(me, u.q, 0, u.c) THEN 1 ELSE 0 END::bigint, NULL::bigint, NULL::integer, u.c::bigint, NULL, NULL, NULL, NULL, NULL::bytea, NULL::bigint, NULL::integer
      FROM (SELECT o.q, count(*)::integer AS c FROM unnest(opened) o(q) GROUP BY o.q) u;
  END IF;
  IF cardinality(ended) > 0 THEN
    RETURN QUERY SELECT 3, u.q::bigint, NULL, CASE WHEN ${s}.wake(me, u.q, 1, -1) THEN 1 ELSE 0 END::bigint, NULL::bigint, NULL::integer, NULL::bigint, NULL, NULL, NULL, NULL, NULL::bytea, NULL::bigint, NULL::integer
      FROM (SELECT DISTINCT o.q FROM unnest(ended) o(q)) u;
  END IF;
  IF q IS NOT NULL THEN
    wait := CASE WHEN granted < most THEN ${s}.due_in() ELSE -2 END;
    RETURN QUERY SELECT 4, wait, NULL, choices::bigint, u.low, (u.l - 1)::integer, NULL::bigint, NULL, NULL, NULL, NULL, NULL::bytea, NULL::bigint, NULL::integer
      FROM unnest(coalesce(lows, ARRAY[NULL::bigint])) WITH ORDINALITY u(low, l);
  END IF;
END`,
    ),

    // Says that somebody waits, or no longer.
    define(
      `${s}.sleep(me bigint, q integer, what integer, waits boolean) RETURNS void`,
      `
BEGIN
  IF waits THEN
    INSERT INTO ${s}.sleeper VALUES (q, what, me, ${NOW} + 5000) ON CONFLICT (queue, kind, handle) DO UPDATE SET until = excluded.until;
  ELSE
    DELETE FROM ${s}.sleeper WHERE queue = q AND kind = what AND handle = me;
  END IF;
END`,
    ),
  ].join("");
}
