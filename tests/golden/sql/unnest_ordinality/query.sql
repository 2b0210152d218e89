SELECT id, place, part FROM orders, UNNEST(ARRAY[customer, product]) WITH ORDINALITY AS parts(part, place)
WHERE part IS NOT NULL
