-- table.exec.mini-batch.enabled: true
-- table.exec.mini-batch.allow-latency: 1 h
-- table.exec.mini-batch.size: 1000000
SELECT n, COUNT(*) AS products, SUM(amount) AS amount, MAX(product) AS newest, COUNT(DISTINCT amount) AS amounts
FROM (SELECT product, COUNT(*) AS n, SUM(amount) AS amount FROM orders GROUP BY product) GROUP BY n
