-- gaps.sql, as Spark has it.
SELECT stream, seq, ts - lag(ts) OVER (PARTITION BY stream ORDER BY seq) > 900000000 AS is_long FROM "disk:read" ORDER BY stream, seq LIMIT 200
