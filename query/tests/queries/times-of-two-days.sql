-- A filter on time over midnight, and a NULL.
SELECT count(*), sum(bytes) FROM "disk:read" WHERE ts BETWEEN '2026-11-23 01:00:30Z' AND '2026-11-24 01:00:30Z' OR host IS NULL
