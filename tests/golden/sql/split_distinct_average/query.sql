-- table.optimizer.distinct-agg.split.enabled: true
-- table.optimizer.distinct-agg.split.bucket-num: 4
SELECT window_end, SUM(DISTINCT amount) AS amounts, AVG(DISTINCT amount) AS usual, AVG(price) AS price
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '20' SECOND)) GROUP BY window_start, window_end
HAVING COUNT(DISTINCT amount) > 1
