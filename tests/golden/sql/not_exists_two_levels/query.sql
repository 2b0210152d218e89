-- fold: true
SELECT DISTINCT o.customer FROM orders AS o WHERE NOT EXISTS (SELECT * FROM orders AS a WHERE a.customer = 'cyd'
  AND NOT EXISTS (SELECT * FROM orders AS b WHERE b.customer = o.customer AND b.product = a.product))
