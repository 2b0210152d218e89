-- fold: true
SELECT o.id, o.product, c.clicks, g.total FROM orders AS o
LEFT JOIN (SELECT who, COUNT(*) AS clicks FROM clicks GROUP BY who) AS c ON o.customer = c.who
LEFT JOIN (SELECT product, SUM(amount) AS total FROM orders WHERE amount > 2 GROUP BY product) AS g ON o.product = g.product
