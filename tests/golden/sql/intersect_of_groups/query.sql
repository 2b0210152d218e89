-- fold: true
SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer INTERSECT SELECT who, COUNT(*) FROM clicks WHERE id IN (1, 3, 5, 6, 7, 11, 16) GROUP BY who
