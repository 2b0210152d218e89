-- fold: true
SELECT id FROM orders AS o WHERE amount IN (SELECT amount FROM orders AS a WHERE a.id <> o.id AND a.product IN (
  SELECT product FROM orders AS b WHERE b.customer = o.customer))
