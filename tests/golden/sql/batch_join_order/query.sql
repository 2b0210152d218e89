-- mode: batch
-- table.optimizer.join-reorder-enabled: true
-- table.optimizer.join.broadcast-threshold: -1
SELECT a.id, b.who, c.product FROM orders AS a JOIN (VALUES (1, 'ann'), (2, 'bob'), (3, 'eve')) AS b(id, who) ON a.id < b.id JOIN orders AS c ON a.id = c.id AND b.id = c.amount JOIN (VALUES ('tea')) AS v(p) ON c.product = v.p
