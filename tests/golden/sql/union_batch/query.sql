-- mode: batch
SELECT customer AS name FROM orders UNION SELECT product FROM orders
