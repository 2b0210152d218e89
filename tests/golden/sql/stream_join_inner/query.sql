SELECT o.id, o.product, c.ms FROM orders AS o JOIN clicks AS c ON o.customer = c.who AND o.id < c.id
