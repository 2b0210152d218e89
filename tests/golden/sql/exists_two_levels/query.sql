-- fold: true
SELECT o.id, o.customer FROM orders AS o WHERE EXISTS (SELECT * FROM clicks AS c WHERE c.who = o.customer
  AND EXISTS (SELECT * FROM orders AS p WHERE p.id = c.id AND p.product = o.product))
