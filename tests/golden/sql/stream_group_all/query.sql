SELECT COUNT(*) AS n, SUM(price) FILTER (WHERE amount > 1) AS price, COUNT(DISTINCT product) AS products,
  COUNT(DISTINCT customer) FILTER (WHERE amount > 1) AS customers
FROM orders
