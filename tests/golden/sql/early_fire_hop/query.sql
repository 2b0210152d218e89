-- table.exec.emit.early-fire.enabled: true
-- table.exec.emit.early-fire.delay: 0 s
SELECT HOP_START(ts, INTERVAL '10' SECOND, INTERVAL '20' SECOND) AS w, MAX(amount) AS most
FROM orders GROUP BY HOP(ts, INTERVAL '10' SECOND, INTERVAL '20' SECOND)
