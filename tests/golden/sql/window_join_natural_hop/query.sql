SELECT * FROM (SELECT product, COUNT(*) AS n, window_start, window_end FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND))
  GROUP BY product, window_start, window_end)
NATURAL JOIN (SELECT product, MAX(amount) AS most, window_start, window_end FROM TABLE(HOP(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND))
  GROUP BY product, window_start, window_end)
