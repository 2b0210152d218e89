SELECT customer, product, window_start, COUNT(*) AS n, COUNT(amount) AS amounts, MIN(amount) AS least, AVG(amount) AS mean
FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND, INTERVAL '20' SECOND)) GROUP BY customer, product, window_start, window_end
