SELECT customer, SUM(amount) AS amount FROM orders GROUP BY customer HAVING COUNT(*) < 3 AND customer <> 'zoe'
