-- One version of an event.
SELECT day, host, disk, count(*) FROM "disk:read#2" GROUP BY day, host, disk
