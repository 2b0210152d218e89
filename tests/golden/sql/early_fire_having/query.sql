-- table.exec.emit.early-fire.enabled: true
-- table.exec.emit.early-fire.delay: 0 s
SELECT customer, COUNT(*) AS n FROM orders WHERE customer IS NOT NULL
GROUP BY customer, TUMBLE(ts, INTERVAL '1' MINUTE) HAVING COUNT(*) > 2
