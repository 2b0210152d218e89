WITH named AS (
  SELECT o.id, o.ts, p.product FROM (SELECT *, PROCTIME() AS now FROM orders) AS o
  JOIN orders FOR SYSTEM_TIME AS OF o.now AS p ON o.id = p.id)
SELECT window_start, product, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE named, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY window_start, window_end, product
