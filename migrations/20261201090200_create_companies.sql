-- migrate:up
CREATE TABLE companies (
  id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT companies_pkey PRIMARY KEY,
  name text NOT NULL CONSTRAINT companies_name_length CHECK (char_length(name) BETWEEN 1 AND 255),
  email text NOT NULL DEFAULT '' CONSTRAINT companies_email_length CHECK (char_length(email) <= 254),
  phone text NOT NULL DEFAULT '' CONSTRAINT companies_phone_length CHECK (char_length(phone) <= 255),
  address text NOT NULL DEFAULT '' CONSTRAINT companies_address_length CHECK (char_length(address) <= 255),
  category text NOT NULL DEFAULT '' CONSTRAINT companies_category_length CHECK (char_length(category) <= 255),
  bio text NOT NULL DEFAULT '' CONSTRAINT companies_bio_length CHECK (char_length(bio) <= 10000),
  website text NOT NULL DEFAULT '' CONSTRAINT companies_website_length CHECK (char_length(website) <= 2000),
  logo_media_id bigint CONSTRAINT companies_logo_media_id_fkey REFERENCES media ON DELETE SET NULL,
  -- Imported companies are known by where they came from; an imported posting names its company by folded name.
  source text,
  external_id text,
  content_hash bytea,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT companies_source_external_id_key UNIQUE (source, external_id)
);
CREATE INDEX companies_name ON companies (lower(name));
CREATE INDEX companies_logo_media_id ON companies (logo_media_id);

CREATE TABLE company_members (
  company_id bigint NOT NULL CONSTRAINT company_members_company_id_fkey REFERENCES companies ON DELETE CASCADE,
  user_id bigint NOT NULL CONSTRAINT company_members_user_id_fkey REFERENCES users ON DELETE CASCADE,
  role text NOT NULL DEFAULT 'representative'
    CONSTRAINT company_members_role_known CHECK (role IN ('representative', 'recruiter')),
  created_at timestamptz NOT NULL DEFAULT now(),
  CONSTRAINT company_members_pkey PRIMARY KEY (company_id, user_id)
);
-- A person represents one company: the stock client edits it by sending it again.
CREATE UNIQUE INDEX company_members_user_id_key ON company_members (user_id);

-- migrate:down
DROP TABLE company_members, companies;
