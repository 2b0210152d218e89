SELECT window_start, window_end, MAX(amounts) AS most, COUNT(*) AS customers
FROM (
  SELECT customer, window_start, window_end, SUM(amount) AS amounts
  FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '20' SECOND))
  GROUP BY customer, window_start, window_end
)
GROUP BY window_start, window_end
