-- mode: batch
SELECT product, customer, total, RANK() OVER (PARTITION BY product ORDER BY total DESC, customer) AS place FROM (
  SELECT product, customer, SUM(amount) AS total FROM orders WHERE customer IS NOT NULL GROUP BY product, customer)
ORDER BY product, place
