-- A left join for what has no match.
SELECT asked.id, count(*) FROM "shop:asked" AS asked LEFT JOIN "shop:answered" AS answered
ON asked.stream = answered.stream AND asked.seq + 1 = answered.seq WHERE asked.session = 'shop' AND answered.id IS NULL GROUP BY asked.id
