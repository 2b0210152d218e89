-- mode: batch
SELECT product, COUNT(*) AS n, SUM(amount) AS total, MAX(price) AS top FROM orders GROUP BY product
