-- mode: batch
SELECT id, product FROM orders AS o WHERE customer IN (SELECT customer FROM orders WHERE product = 'milk') AND NOT EXISTS (SELECT 1 FROM orders AS p WHERE p.customer = o.customer AND p.id > o.id) ORDER BY id
