-- A join over ranges of numbers in a stream.
SELECT other.event, count(*) AS times
FROM "shop:answered" AS slow JOIN events AS other ON other.stream = slow.stream AND other.seq BETWEEN slow.seq - 5 AND slow.seq - 1
WHERE slow.seq >= 5 AND slow.nanos > 9900 GROUP BY other.event ORDER BY other.event
