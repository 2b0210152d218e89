SELECT product, LISTAGG(customer, '|') AS who, ARRAY_AGG(amount) AS amounts, COLLECT(DISTINCT customer) AS bag,
  PERCENTILE(amount, 0.5) AS middle
FROM orders GROUP BY product
