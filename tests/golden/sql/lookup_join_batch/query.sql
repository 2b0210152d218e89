-- mode: batch
SELECT /*+ LOOKUP('table' = 'c', 'async' = 'false') */ o.id, UPPER(c.who) AS who FROM (SELECT *, PROCTIME() AS now FROM orders) AS o
JOIN clicks FOR SYSTEM_TIME AS OF o.now AS c ON o.customer = c.who ORDER BY o.id, c.id
