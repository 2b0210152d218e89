-- the sessions of all orders, and of each what a condition leaves
SELECT window_start, window_end, COUNT(*) AS n
FROM TABLE(SESSION(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' SECOND))
WHERE amount > 1 GROUP BY window_start, window_end
