-- mode: batch
SELECT id, country, price FROM sales ORDER BY price DESC, id LIMIT 3
