-- fold: true
SELECT customer, SUM(amount) AS total FROM orders GROUP BY customer
HAVING SUM(amount) > (SELECT AVG(amount) FROM orders)
