-- table.exec.mini-batch.enabled: true
-- table.exec.mini-batch.allow-latency: 1 min
-- table.exec.mini-batch.size: 1000
-- table.exec.state.ttl: 1 d
SELECT customer FROM (SELECT customer, PROCTIME() AS now FROM orders)
QUALIFY ROW_NUMBER() OVER (PARTITION BY customer ORDER BY now DESC) = 1
