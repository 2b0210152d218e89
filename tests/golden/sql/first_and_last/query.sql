SELECT customer, window_start, FIRST_VALUE(product) AS f, LAST_VALUE(product) AS l, STDDEV_POP(amount) AS s, VAR_SAMP(price) AS v
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '20' SECOND)) WHERE customer IN ('ann', 'bob') GROUP BY customer, window_start, window_end
