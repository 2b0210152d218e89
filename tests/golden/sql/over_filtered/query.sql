SELECT id, product, n FROM (
  SELECT *, COUNT(*) OVER (PARTITION BY product ORDER BY ts) AS n, SUM(amount) OVER (PARTITION BY product ORDER BY ts) AS unused
  FROM orders)
WHERE product = 'tea' AND n > 1
