-- fold: true
-- table.exec.mini-batch.enabled: true
-- table.exec.mini-batch.allow-latency: 50 ms
-- table.exec.mini-batch.size: 5
SELECT o.id, c.id AS click, n FROM clicks AS c FULL JOIN orders AS o ON o.customer = c.who
LEFT JOIN (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer) AS g ON g.customer = c.who AND n > o.id
