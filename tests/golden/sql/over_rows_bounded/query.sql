SELECT id, customer, SUM(price) OVER w AS total, COUNT(amount) FILTER (WHERE amount > 1) OVER w AS n,
  MAX(product) OVER w AS most, VAR_POP(amount) OVER w AS spread, FIRST_VALUE(amount) OVER w AS first_amount,
  LAST_VALUE(amount) OVER w AS last_amount
FROM orders WINDOW w AS (PARTITION BY customer ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)
