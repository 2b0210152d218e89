-- table.exec.mini-batch.enabled: true
-- table.exec.mini-batch.allow-latency: 1 h
-- table.exec.mini-batch.size: 1000000
SELECT product FROM orders WHERE amount > 1 INTERSECT SELECT product FROM orders WHERE price < 3
