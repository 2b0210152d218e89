-- mode: batch
SELECT one FROM (SELECT 1 AS one, id FROM orders UNION ALL SELECT 1, amount FROM orders) LIMIT 20
