SELECT o.*, id AS again FROM orders AS o WHERE o.id = 1
