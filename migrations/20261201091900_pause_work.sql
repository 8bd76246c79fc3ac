-- migrate:up
-- Kinds of work that nobody is to begin for now. A row stays when its pause is over: by `changes` workers see that
-- they must look again at items that they have passed by.
CREATE TABLE work_pauses (
  kind text NOT NULL,
  holder text NOT NULL CONSTRAINT work_pauses_holder_known CHECK (holder IN ('operator', 'backup')),
  paused boolean NOT NULL DEFAULT true,
  -- The pause of a program ends by itself when that is killed; NULL: only by a word.
  until timestamptz,
  changes bigint NOT NULL DEFAULT 1,
  since timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT work_pauses_pkey PRIMARY KEY (kind, holder)
);

-- migrate:down
DROP TABLE work_pauses;
