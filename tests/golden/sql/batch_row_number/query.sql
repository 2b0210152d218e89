-- mode: batch
SELECT id, product, price, ROW_NUMBER() OVER (PARTITION BY product ORDER BY price DESC, id) AS rn
FROM orders
ORDER BY product NULLS LAST, rn
