-- fold: true
SELECT customer AS name, COUNT(*) AS n FROM orders GROUP BY customer
UNION SELECT who, COUNT(*) FROM clicks GROUP BY who
