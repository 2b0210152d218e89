-- fold: true
SELECT a.customer, COUNT(*) AS n, MAX(b.price) AS top FROM orders AS a
JOIN orders AS b ON a.product = b.product AND a.id <> b.id AND b.ts BETWEEN a.ts - INTERVAL '10' SECOND AND a.ts GROUP BY a.customer
