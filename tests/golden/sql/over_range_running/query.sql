SELECT id, product, ts, COUNT(*) OVER w AS n, SUM(amount) OVER w AS total, AVG(price) OVER w AS mean,
  MIN(price) OVER w AS least, MAX(amount) OVER w AS most
FROM orders WINDOW w AS (PARTITION BY product ORDER BY ts)
