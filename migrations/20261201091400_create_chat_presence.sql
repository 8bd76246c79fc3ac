-- migrate:up
-- Of each start of a process its own number, and the lower half of the key of its advisory lock. NULL: written by a
-- version that tells nobody whether it lives, so nobody judges it.
ALTER TABLE chat_instances ADD COLUMN run integer CONSTRAINT chat_instances_run_key UNIQUE;

-- Who is connected to which process, written when they come and go. A row whose process has none in chat_instances says
-- nothing.
CREATE TABLE chat_presence (
  user_id bigint NOT NULL,
  run integer NOT NULL,
  CONSTRAINT chat_presence_pkey PRIMARY KEY (user_id, run)
);
CREATE INDEX chat_presence_run ON chat_presence (run);

-- The cursor of the polling net: who may have come or gone, a row a batch, read up to pg_snapshot_xmin, pruned after an
-- hour.
CREATE TABLE presence_changes (
  tx xid8 NOT NULL DEFAULT pg_current_xact_id(),
  user_ids bigint[] NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX presence_changes_tx ON presence_changes (tx);
CREATE INDEX presence_changes_at ON presence_changes (at);

-- migrate:down
DROP TABLE presence_changes, chat_presence;
ALTER TABLE chat_instances DROP COLUMN run;
