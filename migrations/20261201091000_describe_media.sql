-- migrate:up
-- What a person says about a file. Null: nothing was said. Who knows neither column goes on as before.
ALTER TABLE media
  ADD COLUMN alternative_text text
    CONSTRAINT media_alternative_text_length CHECK (char_length(alternative_text) <= 1000),
  ADD COLUMN caption text CONSTRAINT media_caption_length CHECK (char_length(caption) <= 1000);

-- migrate:down
ALTER TABLE media DROP COLUMN caption, DROP COLUMN alternative_text;
