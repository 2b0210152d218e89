SELECT id, LAG(id) OVER w AS before_it, LAG(price, 2, 0.5) OVER w AS second_before, RANK() OVER w AS rnk,
  DENSE_RANK() OVER w AS dense, ROW_NUMBER() OVER w AS rn, SUM(amount) OVER (w ROWS 1 PRECEDING) AS two,
  SUM(amount) OVER (ORDER BY ts) AS overall
FROM orders WINDOW w AS (PARTITION BY product ORDER BY ts)
