SELECT product, ts, rn FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY product ORDER BY ts) AS rn FROM orders
) WHERE rn <= 1
