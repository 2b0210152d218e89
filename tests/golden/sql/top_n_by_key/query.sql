SELECT product, id, amount, window_end
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, product ORDER BY amount DESC NULLS LAST) AS rn
  FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))
)
WHERE 2 > rn AND product <> 'milk'
