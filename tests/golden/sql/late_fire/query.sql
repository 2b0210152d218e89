-- table.exec.emit.late-fire.enabled: true
-- table.exec.emit.late-fire.delay: 0 s
-- table.exec.emit.allow-lateness: 1 min
SELECT product, TUMBLE_END(ts, INTERVAL '10' SECOND) AS w, SUM(amount) AS total
FROM orders GROUP BY product, TUMBLE(ts, INTERVAL '10' SECOND)
