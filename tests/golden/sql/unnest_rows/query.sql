SELECT id, what, n + 1 AS more
FROM orders CROSS JOIN UNNEST(ARRAY[ROW(product, amount), ROW(customer, 10)]) AS parts(what, n)
WHERE id <= 4
