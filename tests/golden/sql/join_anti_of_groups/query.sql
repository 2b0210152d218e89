-- fold: true
SELECT o.id, o.product FROM orders AS o LEFT JOIN (
  SELECT product FROM orders GROUP BY product HAVING COUNT(*) > 3) AS g ON o.product = g.product WHERE g.product IS NULL
