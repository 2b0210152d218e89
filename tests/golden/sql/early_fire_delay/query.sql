-- table.exec.emit.early-fire.enabled: true
-- table.exec.emit.early-fire.delay: 1 h
SELECT product, COUNT(*) AS n FROM orders GROUP BY product, TUMBLE(ts, INTERVAL '10' SECOND)
