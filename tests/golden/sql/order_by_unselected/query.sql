-- mode: batch
SELECT id, price AS cost
FROM orders
WHERE price IS NOT NULL
ORDER BY product DESC, cost * -1, orders.amount, 1
LIMIT 8
