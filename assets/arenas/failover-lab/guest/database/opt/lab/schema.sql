CREATE ROLE lab LOGIN;
GRANT pg_monitor TO lab;
CREATE DATABASE lab OWNER lab;
\connect lab
SET ROLE lab;
CREATE TABLE records (id text PRIMARY KEY, value text NOT NULL);
-- Which machine took a write of the referee's own: a history has one writer.
CREATE TABLE witness (id text PRIMARY KEY, value text NOT NULL);
CREATE TABLE prices (item text PRIMARY KEY, cents integer NOT NULL);
INSERT INTO prices VALUES ('apple', 120), ('bread', 340), ('coffee', 890), ('rice', 210);
