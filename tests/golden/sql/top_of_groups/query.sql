-- fold: true
SELECT product, total, n FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY total DESC, product) AS n FROM (SELECT product, SUM(amount) AS total FROM orders GROUP BY product)) WHERE n BETWEEN 1 AND 2
