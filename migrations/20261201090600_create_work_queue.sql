-- migrate:up
-- One fence a claimed batch, never used twice: who completes an item must name the fence it was claimed with.
CREATE SEQUENCE work_fence;
CREATE TABLE work_items (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT work_items_pkey PRIMARY KEY,
  -- The transaction that made the item ready. Ordered by (tx, id), a worker's cursor passes no row that commits late.
  tx xid8 NOT NULL DEFAULT pg_current_xact_id(),
  run_at timestamptz NOT NULL DEFAULT now(),
  created_at timestamptz NOT NULL DEFAULT now(),
  leased_until timestamptz,
  fence bigint,
  attempts smallint NOT NULL DEFAULT 0,
  waiting boolean NOT NULL DEFAULT false,
  -- The same unique key was put in while the item ran: what it read may be old, so it runs once more.
  again boolean NOT NULL DEFAULT false,
  kind text NOT NULL,
  worker text,
  last_error text,
  unique_key text CONSTRAINT work_items_unique_key_length CHECK (char_length(unique_key) <= 200),
  payload jsonb NOT NULL
) WITH (
  -- Room on the page for the larger version that a claim makes; dead rows are taken away often and without pauses.
  fillfactor = 40, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000,
  autovacuum_vacuum_cost_delay = 0
);
-- No index may name leased_until, fence, worker or attempts: a claim stays HOT.
CREATE INDEX work_items_ready ON work_items (tx, id) WHERE NOT waiting;
CREATE INDEX work_items_waiting ON work_items (run_at) WHERE waiting;
-- One of a kind until it is done.
CREATE UNIQUE INDEX work_items_unique_key_key ON work_items (unique_key) WHERE unique_key IS NOT NULL;

CREATE TABLE work_dead (
  id bigint CONSTRAINT work_dead_pkey PRIMARY KEY,
  kind text NOT NULL,
  payload jsonb NOT NULL,
  unique_key text,
  attempts smallint NOT NULL,
  last_error text,
  worker text,
  created_at timestamptz NOT NULL,
  died_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX work_dead_died_at ON work_dead (died_at);

-- The last firing of every schedule: whoever moves it forward puts the item in, in the same transaction.
CREATE TABLE work_schedules (
  name text CONSTRAINT work_schedules_pkey PRIMARY KEY,
  fired_for timestamptz NOT NULL
);

-- migrate:down
DROP TABLE work_schedules, work_dead, work_items;
DROP SEQUENCE work_fence;
