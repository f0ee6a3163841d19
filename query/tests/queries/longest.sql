-- A filter, an order and a limit.
SELECT id, path, nanos FROM "shop:answered" WHERE status = 200 ORDER BY nanos DESC, id, path LIMIT 10
