-- fold: true
WITH g AS (SELECT product, SUM(amount) AS n FROM orders GROUP BY product), s AS (SELECT SUM(n) AS total FROM g)
SELECT g.product, g.n, CAST(100 * g.n AS DECIMAL(10, 2)) / s.total AS share FROM g CROSS JOIN s WHERE g.product IS NOT NULL
