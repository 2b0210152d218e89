SELECT customer, id, ts, window_start
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, customer ORDER BY ts DESC) AS rn
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))
)
WHERE rn = 1
