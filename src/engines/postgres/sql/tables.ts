/**
 * The tables. The shape follows one rule: the cost of a step must not grow with what waits, and an update must not touch an index.
 *
 * - `key` has a row only for keys that have work, a lease or a pause. None of the columns that change is indexed, so that PostgreSQL
 *   rewrites the row in its own page (a HOT update) and cleans up after itself without a vacuum.
 * - `ready` lists the keys that may be handed out, `item` is written once and removed once. An item is found by its key, its level and its
 *   order; `floors` of its key says from where to look, so that nobody walks over what was removed and not yet vacuumed.
 * - `timer` says when somebody should look at some keys: a row for a whole batch of leases, not one for each. It is never early to look,
 *   and a lease that was settled or renewed meanwhile is simply passed over.
 * - `counter` has a row per queue and shard, because one row for all would make every transaction wait for every other.
 * - `sleeper` is not logged: it says who waits, and whoever waits says so again every few seconds.
 *
 * Times are milliseconds since 1970 by the server's clock. Fences, orders and places are numbered by one sequence.
 */
export function tables(s: string): string {
  return `
CREATE SEQUENCE ${s}.number;

CREATE TABLE ${s}.queue (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  levels text[] NOT NULL,
  paused boolean NOT NULL DEFAULT false
);

CREATE TABLE ${s}.counter (
  queue integer NOT NULL,
  shard integer NOT NULL,
  waiting bigint[] NOT NULL,
  total bigint NOT NULL DEFAULT 0,
  delayed bigint NOT NULL DEFAULT 0,
  running bigint NOT NULL DEFAULT 0,
  dead bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (queue, shard)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

CREATE TABLE ${s}.key (
  id bigint PRIMARY KEY,
  queue integer NOT NULL,
  name text COLLATE "C" NOT NULL,
  state smallint NOT NULL DEFAULT 0,
  paused boolean NOT NULL DEFAULT false,
  held boolean NOT NULL DEFAULT false,
  wanted boolean NOT NULL DEFAULT false,
  cancel boolean NOT NULL DEFAULT false,
  backoff boolean NOT NULL DEFAULT false,
  level smallint NOT NULL DEFAULT 0,
  waiting integer NOT NULL DEFAULT 0,
  delayed integer NOT NULL DEFAULT 0,
  ord bigint NOT NULL DEFAULT 0,
  place bigint NOT NULL DEFAULT 0,
  at bigint NOT NULL DEFAULT 0,
  -- Where the item was that runs, when it was handed out: most likely it still is there.
  spot tid,
  fence bigint NOT NULL DEFAULT 0,
  since bigint NOT NULL DEFAULT 0,
  streak bigint NOT NULL DEFAULT 0,
  timer bigint NOT NULL DEFAULT 0,
  kept bigint NOT NULL DEFAULT 0,
  owner bigint NOT NULL DEFAULT 0,
  progress double precision,
  worker text,
  lane integer[] NOT NULL,
  floors bigint[] NOT NULL,
  -- How many items the lease covers, and how many items of the key run one by one.
  covered integer NOT NULL DEFAULT 1,
  alone integer NOT NULL DEFAULT 0,
  UNIQUE (queue, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE ${s}.ready (
  queue integer NOT NULL,
  level smallint NOT NULL,
  place bigint NOT NULL,
  key bigint NOT NULL,
  since bigint NOT NULL,
  PRIMARY KEY (queue, level, place)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE ${s}.item (
  key bigint NOT NULL,
  ord bigint NOT NULL,
  level smallint NOT NULL,
  attempt integer NOT NULL DEFAULT 0,
  due bigint NOT NULL DEFAULT 0,
  keep bigint NOT NULL,
  submitted bigint NOT NULL,
  id text,
  type text,
  headers text,
  body text,
  bytes bytea,
  -- The last few attempts that came to nothing go with an item as long as it lives, and with how it ended: lines of JSON (\`engine/attempts.ts\`).
  tried text,
  -- How often its lease was lost.
  losses integer,
  -- It is to be cancelled with its lease.
  cancel boolean,
  PRIMARY KEY (key, level, ord)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE ${s}.delayed (
  n bigint PRIMARY KEY,
  queue integer NOT NULL,
  key text COLLATE "C" NOT NULL,
  level smallint NOT NULL,
  ord bigint NOT NULL DEFAULT 0,
  due bigint NOT NULL,
  counted boolean NOT NULL,
  latest boolean NOT NULL DEFAULT false,
  attempt integer NOT NULL DEFAULT 0,
  keep bigint NOT NULL,
  submitted bigint NOT NULL,
  id text,
  type text,
  headers text,
  body text,
  bytes bytea,
  tried text,
  losses integer
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000);
CREATE INDEX delayed_due ON ${s}.delayed (due, n);
-- Of transactions of the application that have been committed, and of which nothing else knows yet.
CREATE INDEX delayed_uncounted ON ${s}.delayed (queue, n) WHERE NOT counted;
CREATE INDEX delayed_uncounted_key ON ${s}.delayed (queue, key, n) WHERE NOT counted;
CREATE INDEX delayed_latest ON ${s}.delayed (queue, key, n) WHERE latest AND NOT counted;
CREATE INDEX delayed_key ON ${s}.delayed (queue, key, level, due, n);

CREATE TABLE ${s}.timer (
  at bigint NOT NULL,
  n bigint NOT NULL,
  keys bigint[] NOT NULL,
  PRIMARY KEY (at, n)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE TABLE ${s}.receipt (
  queue integer NOT NULL,
  id text COLLATE "C" NOT NULL,
  key text NOT NULL,
  level smallint NOT NULL,
  submitted bigint NOT NULL,
  -- Where its item stands: its order in the line, or below zero its number among the delayed.
  ord bigint NOT NULL,
  state text,
  ended bigint,
  expires bigint,
  attempt integer,
  result_type text,
  result text,
  result_bytes bytea,
  failure text,
  tried text,
  -- Why a result is missing.
  missing text,
  PRIMARY KEY (queue, id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000);
CREATE INDEX receipt_expires ON ${s}.receipt (expires) WHERE expires IS NOT NULL;

CREATE TABLE ${s}.dead (
  place bigint PRIMARY KEY,
  queue integer NOT NULL,
  id text COLLATE "C" NOT NULL,
  key text NOT NULL,
  level smallint NOT NULL,
  attempt integer NOT NULL,
  keep bigint NOT NULL,
  submitted bigint NOT NULL,
  at bigint NOT NULL,
  failure text NOT NULL,
  remembered boolean NOT NULL,
  type text,
  headers text,
  body text,
  bytes bytea,
  tried text,
  UNIQUE (queue, id)
);
CREATE INDEX dead_queue ON ${s}.dead (queue, place);

CREATE TABLE ${s}.cell (
  name text COLLATE "C" PRIMARY KEY,
  version bigint NOT NULL,
  value text NOT NULL,
  expires bigint
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE INDEX cell_expires ON ${s}.cell (expires) WHERE expires IS NOT NULL;

CREATE UNLOGGED TABLE ${s}.sleeper (
  queue integer NOT NULL,
  kind smallint NOT NULL,
  handle bigint NOT NULL,
  until bigint NOT NULL,
  PRIMARY KEY (queue, kind, handle)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
`;
}
