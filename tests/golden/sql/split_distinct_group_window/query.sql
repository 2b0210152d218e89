-- table.optimizer.distinct-agg.split.enabled: true
SELECT who, HOP_START(`at`, INTERVAL '1' DAY, INTERVAL '2' DAY) AS begins, COUNT(DISTINCT id) AS clicks
FROM clicks GROUP BY who, HOP(`at`, INTERVAL '1' DAY, INTERVAL '2' DAY)
