-- mode: batch
-- table.optimizer.join-reorder-enabled: true
SELECT a.id, b.who, c.product FROM orders AS a JOIN clicks AS b ON a.id < b.id JOIN orders AS c ON a.id = c.id AND b.id = c.amount JOIN (VALUES ('tea')) AS v(p) ON c.product = v.p
