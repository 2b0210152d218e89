-- fold: true
WITH names AS (SELECT customer AS name, 1 AS kind FROM orders UNION ALL SELECT who, 2 FROM clicks)
SELECT name, COUNT(*) AS n, SUM(kind) AS kinds FROM names WHERE name IS NOT NULL GROUP BY name HAVING COUNT(*) > 2
