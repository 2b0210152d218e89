SELECT id, price * amount AS total, UPPER(customer) AS who FROM orders
