SELECT product, amount, ts, rn FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY product ORDER BY ts DESC) AS rn FROM orders
) WHERE rn = 1
