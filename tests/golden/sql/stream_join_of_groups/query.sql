-- fold: true
SELECT p.product, p.n, c.total
FROM (SELECT product, COUNT(*) AS n FROM orders GROUP BY product) AS p
JOIN (SELECT product, SUM(amount) AS total FROM orders WHERE amount > 1 GROUP BY product) AS c
  ON p.product = c.product
