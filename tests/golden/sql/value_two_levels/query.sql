-- fold: true
SELECT id, (SELECT COUNT(*) FROM clicks AS c WHERE c.who = o.customer AND EXISTS (
  SELECT * FROM orders AS p WHERE p.id = c.id AND p.product = o.product)) AS n FROM orders AS o
