-- fold: true
SELECT product, id, ts, rn FROM (
  SELECT o.product, o.id, o.ts, ROW_NUMBER() OVER (PARTITION BY o.product ORDER BY o.ts) AS rn
  FROM orders AS o LEFT JOIN clicks AS c ON o.customer = c.who AND c.id > 2
) WHERE rn = 1
