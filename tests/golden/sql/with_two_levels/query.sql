-- fold: true
WITH spent AS (SELECT customer, SUM(price * amount) AS total FROM orders GROUP BY customer),
  big AS (SELECT customer, total FROM spent WHERE total > 10)
SELECT big.customer, big.total, COUNT(c.id) AS clicks FROM big LEFT JOIN clicks AS c ON c.who = big.customer
GROUP BY big.customer, big.total
