SELECT window_start, ARRAY_AGG(product) AS p, ARRAY_AGG(DISTINCT product) AS d,
  ARRAY_AGG(amount) FILTER (WHERE amount > 100) AS f, ARRAY_AGG(product IGNORE NULLS) AS i
FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end
