-- mode: batch
-- table.optimizer.join.broadcast-threshold: -1
SELECT a.product, COUNT(*) AS pairs FROM orders AS a JOIN orders AS b ON a.product = b.product AND a.id < b.id GROUP BY a.product
