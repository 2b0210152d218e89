SELECT DISTINCT product, amount > 2 AS many FROM orders
