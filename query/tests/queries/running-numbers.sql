-- Window functions over hosts: numbers and running sums.
SELECT host, ts, row_number() OVER (PARTITION BY host ORDER BY ts, stream, seq) AS number, sum(bytes) OVER (PARTITION BY host ORDER BY ts, stream, seq) AS so_far
FROM "disk:read" WHERE day = '2026-11-23' ORDER BY host, number LIMIT 50
