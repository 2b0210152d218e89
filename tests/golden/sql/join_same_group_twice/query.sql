-- fold: true
WITH g AS (SELECT customer, COUNT(*) AS n FROM orders WHERE customer IS NOT NULL GROUP BY customer)
SELECT a.customer, b.customer AS other, a.n FROM g AS a JOIN g AS b ON a.n = b.n AND a.customer < b.customer
