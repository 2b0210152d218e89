-- table.exec.emit.early-fire.enabled: true
-- table.exec.emit.early-fire.delay: 0 s
-- parallelism.default: 1
SELECT product, TUMBLE_START(ts, INTERVAL '10' SECOND) AS w, COUNT(*) AS n, MAX(price) AS top
FROM orders GROUP BY product, TUMBLE(ts, INTERVAL '10' SECOND)
