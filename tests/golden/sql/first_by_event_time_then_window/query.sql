WITH firsts AS (SELECT customer, ts FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY customer ORDER BY ts) = 1)
SELECT window_start, COUNT(*) AS fresh, MIN(customer) AS least
FROM TABLE(TUMBLE(TABLE firsts, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY window_start, window_end
