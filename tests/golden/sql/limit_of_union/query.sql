-- mode: batch
SELECT uno FROM (SELECT 1 AS uno, id FROM orders UNION ALL SELECT 1, amount FROM orders) LIMIT 20
