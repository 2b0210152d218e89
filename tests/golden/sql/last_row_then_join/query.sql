-- fold: true
SELECT o.customer, o.id, c.clicks FROM (
  SELECT customer, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY ts DESC) AS n FROM orders) WHERE n = 1) AS o
JOIN (SELECT who, COUNT(*) AS clicks FROM clicks GROUP BY who) AS c ON o.customer = c.who
