-- fold: true
SELECT id, product, total FROM (
  SELECT id, product, SUM(amount) OVER (PARTITION BY product ORDER BY ts) AS total FROM orders) WHERE total > 5
