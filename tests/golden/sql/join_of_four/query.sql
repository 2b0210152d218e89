-- fold: true
SELECT a.product, COUNT(*) AS pairs, COUNT(DISTINCT c.id) AS clicks, MAX(g.total) AS total FROM orders AS a
JOIN orders AS b ON a.product = b.product AND a.id < b.id JOIN clicks AS c ON c.who = b.customer
JOIN (SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer) AS g ON g.customer = a.customer GROUP BY a.product
