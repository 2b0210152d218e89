-- fold: true
SELECT o.id, o.customer, c.id AS click FROM orders AS o LEFT JOIN clicks AS c ON o.customer = c.who AND c.id < o.id
