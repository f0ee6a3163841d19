-- times-of-two-days.sql, as Spark has it.
SELECT count(*), sum(bytes) FROM "disk:read"
WHERE ts BETWEEN unix_micros(TIMESTAMP '2026-11-23 01:00:30Z') * 1000 AND unix_micros(TIMESTAMP '2026-11-24 01:00:30Z') * 1000 OR host IS NULL
