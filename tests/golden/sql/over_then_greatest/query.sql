-- fold: true
SELECT product, MAX(total) AS most, COUNT(*) AS n FROM (
  SELECT product, SUM(amount) OVER (PARTITION BY product ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS total FROM orders)
GROUP BY product
