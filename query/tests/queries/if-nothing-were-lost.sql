-- A number beside what is missing in it.
SELECT count(*) AS stored, (SELECT at_least FROM lost('shop:answered')) AS lost_in_its_channels FROM "shop:answered"
