-- mode: batch
SELECT id, price FROM orders WHERE amount > 1000 ORDER BY price, id LIMIT 3
