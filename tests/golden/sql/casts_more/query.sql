SELECT id, CAST(price AS STRING) AS s, CAST(price AS DECIMAL(5, 1)) AS d, CAST(amount AS BOOLEAN) AS b, CAST('12' AS SMALLINT) + amount AS n, CAST(ts AS STRING) AS t, CAST(id AS CHAR(3)) AS c, CAST(price AS FLOAT) AS f,
  TRY_CAST('x' AS DATE) AS bad, CAST('2020-02-03' AS DATE) AS good, CAST(amount AS TINYINT) AS tiny
FROM orders
