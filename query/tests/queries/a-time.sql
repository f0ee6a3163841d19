-- A filter on time within a day.
SELECT host, sector, bytes, ts FROM "disk:read" WHERE ts >= '2026-11-24 01:00:10Z' AND ts < '2026-11-24 01:00:20Z'
