WITH sold AS (
  SELECT window_start, window_end, COLLECT(product) AS products
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end
)
SELECT window_start, product FROM sold CROSS JOIN UNNEST(products) AS p(product)
