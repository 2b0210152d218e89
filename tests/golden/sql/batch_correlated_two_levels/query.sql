-- mode: batch
SELECT o.customer, COUNT(*) AS n FROM orders AS o WHERE EXISTS (SELECT * FROM clicks AS c WHERE c.who = o.customer
  AND NOT EXISTS (SELECT * FROM orders AS p WHERE p.id = c.id AND p.product = o.product)) GROUP BY o.customer
