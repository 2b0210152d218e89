SELECT g.customer, g.n, c.ms FROM (
  SELECT customer, n, PROCTIME() AS now FROM (SELECT customer, COUNT(*) AS n FROM orders GROUP BY customer)) AS g
LEFT JOIN clicks FOR SYSTEM_TIME AS OF g.now AS c ON g.customer = c.who
