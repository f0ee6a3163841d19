-- All versions of an event as one table.
SELECT event, count(*), count(bytes), count(disk), sum(sector) FROM "disk:read#*" GROUP BY event
