-- mode: batch
SELECT product, window_end
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))
GROUP BY product, window_start, window_end
ORDER BY COUNT(*) DESC, MAX(price) NULLS LAST, window_end
