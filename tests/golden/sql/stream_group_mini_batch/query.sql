-- table.exec.mini-batch.enabled: true
-- table.exec.mini-batch.allow-latency: 1 h
-- table.exec.mini-batch.size: 1000000
SELECT product, COUNT(*) AS n, SUM(amount) AS amount, MAX(price) AS price, AVG(DISTINCT amount) AS mean FROM orders GROUP BY product
