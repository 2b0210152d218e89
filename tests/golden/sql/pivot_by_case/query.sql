-- fold: true
SELECT customer, SUM(CASE WHEN product = 'tea' THEN amount ELSE 0 END) AS tea,
  SUM(amount) FILTER (WHERE product = 'cake') AS cake, COUNT(DISTINCT product) FILTER (WHERE price > 2) AS dear
FROM orders GROUP BY customer
