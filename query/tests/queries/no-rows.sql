-- Aggregates of no rows.
SELECT count(*), sum(bytes), min(ts) FROM "disk:read" WHERE day = '1999-01-01'
