-- mode: batch
SELECT 1 AS uno FROM orders LIMIT 3 OFFSET 2
