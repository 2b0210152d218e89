-- fold: true
SELECT DISTINCT who FROM clicks AS c WHERE EXISTS (
  SELECT o.product FROM orders AS o WHERE o.customer = c.who GROUP BY o.product HAVING COUNT(*) > 1)
