-- mode: batch
SELECT COUNT(*) AS n, SUM(amount) AS total, AVG(price) AS mean, COUNT(DISTINCT product) AS kinds FROM orders
