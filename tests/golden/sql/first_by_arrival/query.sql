-- table.exec.state.ttl: 1 d
SELECT product, rn + 1 AS next FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY product, amount > 2 ORDER BY now) AS rn
  FROM (SELECT *, PROCTIME() AS now FROM orders)
) WHERE rn = 1
