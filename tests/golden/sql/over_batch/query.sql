-- mode: batch
SELECT id, product, price, SUM(amount) OVER w AS total, LEAD(id) OVER (PARTITION BY product ORDER BY price DESC, id) AS next,
  NTILE(2) OVER (ORDER BY id) AS half, RANK() OVER (PARTITION BY product ORDER BY price DESC) AS place,
  COUNT(*) OVER (PARTITION BY customer) AS of_customer
FROM orders
WINDOW w AS (PARTITION BY product ORDER BY price NULLS LAST RANGE BETWEEN 0.2 PRECEDING AND 0.3 FOLLOWING)
ORDER BY id
