SELECT id, CAST(price AS INT), CAST(id AS STRING), CAST(amount AS DOUBLE) / 2, TRY_CAST(product AS INT) FROM orders
