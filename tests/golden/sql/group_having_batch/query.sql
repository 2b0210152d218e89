-- mode: batch
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer HAVING COUNT(*) > 2
