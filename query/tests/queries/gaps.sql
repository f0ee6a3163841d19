-- A window function over streams.
SELECT stream, seq, ts - lag(ts) OVER (PARTITION BY stream ORDER BY seq) > INTERVAL '900 milliseconds' AS is_long FROM "disk:read" ORDER BY stream, seq LIMIT 200
