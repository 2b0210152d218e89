SELECT customer, total, window_start, rn
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY total DESC, customer) AS rn
  FROM (
    SELECT customer, window_start, window_end, SUM(amount) AS total
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))
    GROUP BY customer, window_start, window_end
  )
)
WHERE rn <= 2
