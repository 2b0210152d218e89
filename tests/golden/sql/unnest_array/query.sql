SELECT id, part FROM orders CROSS JOIN UNNEST(SPLIT(product, 'a')) AS parts(part)
