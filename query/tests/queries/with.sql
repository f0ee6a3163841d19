-- A common table expression in a NOT IN.
WITH failed AS (SELECT id, count(*) AS times FROM "shop:answered" WHERE status = 500 GROUP BY id)
SELECT times, count(*) FROM failed WHERE id NOT IN (SELECT id FROM failed WHERE times > 1000) GROUP BY times
