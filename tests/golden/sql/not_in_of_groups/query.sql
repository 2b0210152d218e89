-- fold: true
SELECT id, product FROM orders WHERE product IS NOT NULL AND product NOT IN (
  SELECT product FROM orders WHERE product IS NOT NULL GROUP BY product HAVING MIN(product) > 'milk')
