-- mode: batch
SELECT 1 AS one FROM orders LIMIT 3 OFFSET 2
