SELECT window_end, COUNT(DISTINCT customer) AS customers, COUNT(DISTINCT product) FILTER (WHERE amount > 1) AS products
FROM TABLE(CUMULATE(TABLE orders, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '20' SECOND)) GROUP BY window_start, window_end
