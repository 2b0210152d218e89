-- mode: batch
SELECT id, price FROM orders ORDER BY price DESC, id LIMIT 3 OFFSET 1
