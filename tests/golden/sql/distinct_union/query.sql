SELECT customer, amount FROM orders UNION SELECT product, amount FROM orders WHERE amount > 1
