-- migrate:up
-- A room is looked up by the id in the middle of its name, which clients split at "_": a name of another shape would be
-- nobody's, or make a client fail.
ALTER TABLE rooms ADD CONSTRAINT rooms_wire_name_shape
  CHECK (split_part(wire_name, '_', 2) = id::text AND length(wire_name) - length(replace(wire_name, '_', '')) = 2);

-- migrate:down
ALTER TABLE rooms DROP CONSTRAINT rooms_wire_name_shape;
