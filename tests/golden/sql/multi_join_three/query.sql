-- fold: true
-- table.optimizer.multi-join.enabled: true
SELECT o.id, c.id AS click, n FROM orders AS o JOIN clicks AS c ON o.customer = c.who
LEFT JOIN (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) AS g ON g.customer = c.who AND n > o.id
