SELECT product, window_end, total, SUM(total) OVER (PARTITION BY product ORDER BY window_time) AS so_far
FROM (SELECT product, window_end, window_time, SUM(amount) AS total
      FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))
      GROUP BY product, window_start, window_end, window_time)
