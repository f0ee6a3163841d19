-- Functions of texts, and counts of distinct values.
SELECT upper(path), length(path), path LIKE '/c%', regexp_replace(path, '^/', ''), count(DISTINCT id) FROM "shop:answered" GROUP BY path
