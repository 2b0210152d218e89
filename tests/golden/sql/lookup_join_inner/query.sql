SELECT o.id, c.id AS click, c.ms FROM (SELECT *, PROCTIME() AS now FROM orders) AS o
JOIN clicks FOR SYSTEM_TIME AS OF o.now AS c ON o.customer = c.who WHERE o.amount > 1 AND c.ms > 1000
