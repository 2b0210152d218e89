SELECT window_end, product, MAX(price) AS dearest FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND)) WHERE customer IS NOT NULL GROUP BY CUBE (product), window_start, window_end
