-- fold: true
SELECT product, COUNT(*) AS n, SUM(amount) AS total FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY ts DESC) AS n FROM orders) WHERE n = 1 GROUP BY product
