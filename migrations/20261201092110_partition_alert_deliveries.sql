-- migrate:up
-- The ledger by the hash of its alert, in four tables, as messages are by their room. No transaction reads it and then
-- writes it, so nobody who waits for this holds what is dropped below.
-- safe: matching waits while the rows are moved; it is background work and is tried again.
LOCK TABLE alert_deliveries IN SHARE ROW EXCLUSIVE MODE;

-- Who reads the table for long, as a backup does, makes this fail now and not after the rows are moved.
SAVEPOINT probe;
-- safe: for a moment.
LOCK TABLE alert_deliveries IN ACCESS EXCLUSIVE MODE;
ROLLBACK TO SAVEPOINT probe;

CREATE TABLE alert_deliveries_moved (LIKE alert_deliveries INCLUDING ALL EXCLUDING INDEXES)
  PARTITION BY HASH (alert_id);
CREATE TABLE alert_deliveries_0 PARTITION OF alert_deliveries_moved FOR VALUES WITH (MODULUS 4, REMAINDER 0);
CREATE TABLE alert_deliveries_1 PARTITION OF alert_deliveries_moved FOR VALUES WITH (MODULUS 4, REMAINDER 1);
CREATE TABLE alert_deliveries_2 PARTITION OF alert_deliveries_moved FOR VALUES WITH (MODULUS 4, REMAINDER 2);
CREATE TABLE alert_deliveries_3 PARTITION OF alert_deliveries_moved FOR VALUES WITH (MODULUS 4, REMAINDER 3);
INSERT INTO alert_deliveries_moved SELECT * FROM alert_deliveries;
ALTER TABLE alert_deliveries_moved
  ADD CONSTRAINT alert_deliveries_moved_once PRIMARY KEY (alert_id, posting_id, channel);
CREATE INDEX alert_deliveries_moved_pending ON alert_deliveries_moved (alert_id) WHERE pending;
ANALYZE alert_deliveries_moved;

SET LOCAL lock_timeout = '3s';
-- safe: one of the same name with the same columns and rows is there before anybody looks.
DROP TABLE alert_deliveries;
-- safe: the same.
ALTER TABLE alert_deliveries_moved RENAME TO alert_deliveries;
ALTER TABLE alert_deliveries RENAME CONSTRAINT alert_deliveries_moved_once TO alert_deliveries_once;
ALTER INDEX alert_deliveries_moved_pending RENAME TO alert_deliveries_pending;

-- migrate:down
LOCK TABLE alert_deliveries IN SHARE ROW EXCLUSIVE MODE;
CREATE TABLE alert_deliveries_moved (LIKE alert_deliveries INCLUDING ALL EXCLUDING INDEXES);
INSERT INTO alert_deliveries_moved SELECT * FROM alert_deliveries;
DROP TABLE alert_deliveries;
ALTER TABLE alert_deliveries_moved RENAME TO alert_deliveries;
ALTER TABLE alert_deliveries ADD CONSTRAINT alert_deliveries_once PRIMARY KEY (alert_id, posting_id, channel);
CREATE INDEX alert_deliveries_pending ON alert_deliveries (alert_id) WHERE pending;
ANALYZE alert_deliveries;
