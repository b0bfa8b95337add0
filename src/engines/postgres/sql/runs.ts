import { define, LEASED, NOW } from "./functions.ts";

/** Longer than a transaction takes that has judged a lease and judges it again. */
const JUDGED_MS = 60_000;

/** The order of the last item that the lease of a key covers, behind the one that runs. NULL: there is none. */
export function lastCovered(s: string, k: string): string {
  return `(SELECT max(z.ord) FROM (SELECT w.ord FROM ${s}.item w WHERE w.key = ${k}.id AND w.level = ${k}.level AND w.ord > ${k}.ord
    ORDER BY w.ord LIMIT ${k}.covered - 1) z)`;
}

/**
 * A lease covers a run: the item that runs, and \`covered - 1\` items behind it, which wait in their line. Whoever marks one of those, or puts something
 * before them, sets \`backoff\`: so a run that ends without it needs no look at what it leaves.
 */
export function runFunctions(s: string): string {
  return [
    // Ends what ran before, of leases whose rows and counters are locked; the item behind it runs from now on. Each lease has as many names as \`sizes\`
    // says. Returns the keys in which something ended, and the queues that have outcomes.
    define(
      `${s}.end_runs(me bigint, kids bigint[], fences bigint[], sizes integer[], names text[], hows text[], whys text[], rtypes text[], rtexts text[],
  rbytes bytea[], OUT changed bigint[], OUT told integer[])`,
      `
DECLARE
  k ${s}.key; x record; j integer; n integer; base integer := 0; spots tid[]; ords bigint[]; ids text[]; marks boolean[]; wanted text[]; nth integer[];
  c_q integer[] := '{}'; c_l integer[] := '{}'; c_n integer[] := '{}';
BEGIN
  changed := '{}'; told := '{}';
  FOR i IN 1 .. cardinality(kids) LOOP
    CONTINUE WHEN sizes[i] <= 0;
    wanted := names[base + 1 : base + sizes[i]];
    base := base + sizes[i];
    SELECT * INTO k FROM ${s}.key z WHERE z.id = kids[i];
    CONTINUE WHEN NOT FOUND OR k.state <> ${LEASED} OR k.fence <> fences[i] OR k.at <= ${NOW} OR k.covered = 1;
    SELECT array_agg(z.spot), array_agg(z.ord), array_agg(coalesce(z.id, ${s}.given_id(k.id, k.level, z.ord))), array_agg(z.cancel)
    INTO spots, ords, ids, marks FROM (
      SELECT w.ctid AS spot, w.ord, w.id, w.cancel FROM ${s}.item w WHERE w.key = k.id AND w.level = k.level AND w.ord >= k.ord
      ORDER BY w.ord LIMIT k.covered) z;
    -- One that is not covered any more was reported before.
    n := 0; nth := '{}';
    FOR j IN 1 .. cardinality(wanted) LOOP
      EXIT WHEN n + 1 = k.covered;
      IF wanted[j] = ids[n + 1] THEN n := n + 1; nth := nth || (base - sizes[i] + j); END IF;
    END LOOP;
    CONTINUE WHEN n = 0;
    FOR x IN DELETE FROM ${s}.item z WHERE z.key = k.id AND z.level = k.level AND z.ord BETWEEN ords[1] AND ords[n]
      RETURNING z.id, z.keep, z.attempt, z.tried
    LOOP
      CONTINUE WHEN x.id IS NULL;
      j := nth[array_position(ids, x.id)];
      PERFORM ${s}.remember(k.queue, x.id, x.keep, coalesce(hows[j], 'done'), x.attempt + 1, rtypes[j], rtexts[j], rbytes[j], NULL, whys[j], x.tried);
      told := told || k.queue;
    END LOOP;
    -- What is left of the transaction judges the lease again, and must not come to another result.
    UPDATE ${s}.key z SET ord = ords[n + 1], spot = spots[n + 1], cancel = coalesce(marks[n + 1], false), covered = z.covered - n,
      at = z.at + ${JUDGED_MS}, waiting = z.waiting - n, lane[z.level + 1] = z.lane[z.level + 1] - n,
      floors[z.level + 1] = CASE WHEN z.backoff THEN z.floors[z.level + 1] ELSE greatest(z.floors[z.level + 1], ords[n + 1] - 1) END
    WHERE z.id = k.id;
    changed := changed || k.id;
    c_q := c_q || k.queue; c_l := c_l || k.level::integer; c_n := c_n || n;
  END LOOP;
  PERFORM ${s}.count(me, u.q, u.l, -sum(u.n)::integer, 0, 0, 0) FROM unnest(c_q, c_l, c_n) u(q, l, n) GROUP BY u.q, u.l;
END`,
    ),

    // What the lease covers behind the item that runs, or ran, waits as before. A cancel that its worker never heard of is carried out; and what came back
    // to before it goes behind it: perhaps its holder had begun with it.
    define(
      `${s}.uncover(me bigint, k ${s}.key) RETURNS void`,
      `
DECLARE x record; n integer := 0; last bigint; olds bigint[]; slots bigint[];
BEGIN
  UPDATE ${s}.key SET covered = 1 WHERE id = k.id;
  IF NOT k.backoff THEN RETURN; END IF;
  last := ${lastCovered(s, "k")};
  FOR x IN DELETE FROM ${s}.item z WHERE z.key = k.id AND z.level = k.level AND z.ord > k.ord AND z.ord <= last AND z.cancel
    RETURNING z.id, z.keep, z.attempt, z.tried
  LOOP
    n := n + 1;
    CONTINUE WHEN x.id IS NULL;
    PERFORM ${s}.remember(k.queue, x.id, x.keep, 'cancelled', x.attempt, NULL, NULL, NULL, NULL, NULL, x.tried);
  END LOOP;
  IF n > 0 THEN
    UPDATE ${s}.key SET waiting = waiting - n, lane[k.level + 1] = lane[k.level + 1] - n WHERE id = k.id;
    PERFORM ${s}.count(me, k.queue, k.level, -n, 0, 0, 0);
  END IF;
  SELECT array_agg(z.ord ORDER BY z.ord < k.ord, z.ord), array_agg(z.ord ORDER BY z.ord) INTO olds, slots FROM ${s}.item z
  WHERE z.key = k.id AND z.level = k.level AND z.ord > k.floors[k.level + 1] AND z.ord <= last;
  IF olds IS NOT DISTINCT FROM slots THEN RETURN; END IF;
  -- They change places. The id of an item that was given none says where it was: it is remembered from now on.
  UPDATE ${s}.item z SET ord = -z.ord, id = coalesce(z.id, ${s}.given_id(z.key, z.level, z.ord))
  WHERE z.key = k.id AND z.level = k.level AND z.ord = ANY (olds);
  UPDATE ${s}.item z SET ord = u.slot FROM unnest(olds, slots) u(old, slot) WHERE z.key = k.id AND z.level = k.level AND z.ord = -u.old;
  INSERT INTO ${s}.receipt AS r (queue, id, key, level, submitted, ord)
  SELECT k.queue, z.id, k.name, z.level, z.submitted, z.ord FROM ${s}.item z WHERE z.key = k.id AND z.level = k.level AND z.ord = ANY (slots)
  ON CONFLICT ON CONSTRAINT receipt_pkey DO UPDATE SET ord = excluded.ord;
  UPDATE ${s}.key SET ord = slots[1] WHERE id = k.id;
END`,
    ),

    // Moves deadlines; and with sizes, ends what ran before. Of a lease whose size is below zero nothing but the deadline is said.
    define(
      `${s}.renew(me bigint, kids bigint[], fences bigint[], leases bigint[], progresses double precision[], sizes integer[], names text[],
  hows text[], whys text[], rtypes text[], rtexts text[], rbytes bytea[]) RETURNS TABLE (n integer, cancel boolean)`,
      `
#variable_conflict use_column
DECLARE now bigint; i integer; asked boolean; was bigint; qs integer[];
BEGIN
  PERFORM 1 FROM (SELECT k.id FROM ${s}.key k WHERE k.id = ANY (kids) ORDER BY k.id FOR UPDATE) locked;
  IF sizes IS NOT NULL THEN
    qs := ARRAY(SELECT DISTINCT k.queue FROM ${s}.key k WHERE k.id = ANY (kids));
    PERFORM ${s}.lock_counters(me, qs);
    PERFORM ${s}.end_runs(me, kids, fences, sizes, names, hows, whys, rtypes, rtexts, rbytes);
    PERFORM ${s}.uncover(me, k) FROM ${s}.key k WHERE k.id = ANY (kids) AND k.covered > 1 AND k.state = ${LEASED} AND k.at > ${NOW}
      AND EXISTS (SELECT FROM unnest(kids, fences, sizes) u(kid, f, size) WHERE u.kid = k.id AND u.f = k.fence AND u.size >= 0);
    PERFORM ${s}.wake(me, u.q, 1, -1) FROM unnest(qs) u(q);
  END IF;
  now := ${NOW};
  FOR i IN 1 .. cardinality(kids) LOOP
    UPDATE ${s}.key k SET at = now + leases[i], timer = least(k.timer, now + leases[i]), progress = coalesce(progresses[i], k.progress)
    FROM (SELECT x.timer FROM ${s}.key x WHERE x.id = kids[i]) before
    WHERE k.id = kids[i] AND k.state = ${LEASED} AND k.fence = fences[i] AND k.at > now RETURNING k.cancel, before.timer INTO asked, was;
    CONTINUE WHEN NOT FOUND;
    -- A lease may become shorter than its timer; then it needs an earlier one.
    IF was > now + leases[i] THEN INSERT INTO ${s}.timer VALUES (now + leases[i], nextval('${s}.number'), ARRAY[kids[i]]); END IF;
    RETURN QUERY SELECT i, asked;
  END LOOP;
END`,
    ),
  ].join("");
}
