-- fold: true
SELECT id, product FROM orders WHERE product IN (SELECT product FROM orders GROUP BY product HAVING SUM(amount) > 9)
