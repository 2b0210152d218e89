-- fold: true
-- table.optimizer.multi-join.enabled: true
SELECT a.id, b.n, c.id AS click, d.top FROM (SELECT customer, COUNT(*) AS n FROM orders WHERE amount > 1 GROUP BY customer) AS b
RIGHT JOIN orders AS a ON a.customer = b.customer
LEFT JOIN clicks AS c ON b.customer = c.who AND c.id > a.id
LEFT JOIN (SELECT customer, MAX(id) AS top FROM orders GROUP BY customer) AS d ON d.customer = a.customer AND d.top > n
