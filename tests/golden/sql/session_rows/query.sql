-- each row with the bounds of its session
SELECT customer, product, ts, window_start, window_end
FROM TABLE(SESSION(TABLE orders PARTITION BY customer, DESCRIPTOR(ts), INTERVAL '5' SECOND))
