-- a-time.sql, as Spark has it: ts is a number of nanoseconds.
SELECT host, sector, bytes, ts FROM "disk:read"
WHERE ts >= unix_micros(TIMESTAMP '2026-11-24 01:00:10Z') * 1000 AND ts < unix_micros(TIMESTAMP '2026-11-24 01:00:20Z') * 1000
