-- The account of each event.
SELECT name, sum(count) FILTER (WHERE what = 'fired') AS fired, sum(count) FILTER (WHERE what = 'stored') AS stored,
    coalesce(sum(count) FILTER (WHERE what = 'lost'), 0) AS lost
FROM account WHERE scope = 'event' GROUP BY name ORDER BY name
