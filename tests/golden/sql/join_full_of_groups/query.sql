-- fold: true
SELECT COALESCE(o.customer, c.who) AS person, o.bought, c.clicks
FROM (SELECT customer, COUNT(DISTINCT product) AS bought FROM orders WHERE customer IS NOT NULL GROUP BY customer) AS o
FULL JOIN (SELECT who, COUNT(*) AS clicks FROM clicks WHERE id < 12 GROUP BY who) AS c ON o.customer = c.who
