-- mode: batch
SELECT product, id, price
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY product ORDER BY price DESC NULLS LAST, id) AS rn FROM orders)
WHERE rn BETWEEN 2 AND 3
ORDER BY product, price DESC, id
