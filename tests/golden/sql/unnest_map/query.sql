SELECT id, k, v FROM orders LEFT JOIN UNNEST(MAP['price', price, 'amount', CAST(amount AS DECIMAL(10, 2))]) AS m(k, v) ON TRUE
WHERE amount > 2
