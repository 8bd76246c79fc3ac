-- migrate:up
CREATE TABLE rooms (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT rooms_pkey PRIMARY KEY,
  application_id bigint CONSTRAINT rooms_application_id_key UNIQUE
    CONSTRAINT rooms_application_id_fkey REFERENCES applications ON DELETE SET NULL,
  -- <representative>_<room id>_<applicant>, "_" in names shown as "‐" (U+2010); fixed at creation.
  wire_name text CONSTRAINT rooms_wire_name_key UNIQUE,
  last_seq bigint NOT NULL DEFAULT 0,
  created_at timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);  -- a bump of last_seq stays on its page (HOT)

CREATE TABLE room_members (
  room_id bigint NOT NULL CONSTRAINT room_members_room_id_fkey REFERENCES rooms ON DELETE CASCADE,
  user_id bigint NOT NULL CONSTRAINT room_members_user_id_fkey REFERENCES users ON DELETE CASCADE,
  last_read_seq bigint NOT NULL DEFAULT 0,
  joined_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT room_members_pkey PRIMARY KEY (room_id, user_id)
);
CREATE INDEX room_members_user_id ON room_members (user_id, room_id);

CREATE TABLE messages (
  room_id bigint NOT NULL,
  seq bigint NOT NULL,
  -- 0: the system itself.
  sender_id bigint NOT NULL,
  client_id text CONSTRAINT messages_client_id_length CHECK (char_length(client_id) BETWEEN 1 AND 64),
  kind text NOT NULL DEFAULT 'text' CONSTRAINT messages_kind_known CHECK (kind IN ('text', 'system', 'edit', 'delete')),
  target_seq bigint,
  body text NOT NULL CONSTRAINT messages_body_length CHECK (octet_length(body) <= 65536),
  media_id bigint,
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT messages_pkey PRIMARY KEY (room_id, seq),
  CONSTRAINT messages_client_id_key UNIQUE (room_id, sender_id, client_id)
);

-- Who may read an attachment is decided by the rooms that have it.
CREATE INDEX messages_media_id ON messages (media_id) WHERE media_id IS NOT NULL;

-- The cursor of the polling net: one row a committed batch, read up to pg_snapshot_xmin, pruned after an hour.
CREATE TABLE room_changes (
  tx xid8 NOT NULL DEFAULT pg_current_xact_id(),
  room_ids bigint[] NOT NULL,
  at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX room_changes_tx ON room_changes (tx);
CREATE INDEX room_changes_at ON room_changes (at);

-- Written on start and stop only; an instance lives while its listening connection holds its advisory lock.
CREATE TABLE chat_instances (
  name text CONSTRAINT chat_instances_pkey PRIMARY KEY,
  internal_address text NOT NULL DEFAULT '',
  started_at timestamptz NOT NULL DEFAULT now(),
  lease_until timestamptz NOT NULL DEFAULT now()
);

-- migrate:down
DROP TABLE chat_instances, room_changes, messages, room_members, rooms;
