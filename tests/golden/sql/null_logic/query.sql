SELECT id, amount > 2 AND price > 3 AS a, amount > 2 OR price > 3 AS o, NOT amount > 2 AS n, amount > 2 IS NOT TRUE AS t, customer IN ('ann', CAST(NULL AS STRING)) AS i,
  customer NOT IN ('ann', 'bob') AS x, amount IS DISTINCT FROM CAST(NULL AS INT) AS d
FROM orders
