-- mode: batch
SELECT id, price FROM orders WHERE amount IS NULL OR price IS NULL OR id < 3 ORDER BY price NULLS LAST, id
