-- Filters on columns of partitions.
SELECT sector, bytes, ts FROM "disk:read" WHERE day = '2026-11-24' AND host = 'web 2' ORDER BY ts, sector LIMIT 100
