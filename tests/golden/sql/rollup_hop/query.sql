-- fold: true
SELECT window_end, product, customer, COUNT(*) AS n, SUM(amount) AS total
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '20' SECOND))
GROUP BY window_start, window_end, ROLLUP (product, customer)
