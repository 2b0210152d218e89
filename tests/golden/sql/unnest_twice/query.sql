SELECT id, a, b FROM orders, UNNEST(ARRAY[1, 2]) AS x(a), UNNEST(ARRAY[a, a * id]) AS y(b) WHERE id < 3
