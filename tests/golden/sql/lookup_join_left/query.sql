SELECT o.id, p.id AS other, p.price FROM (SELECT *, PROCTIME() AS now FROM orders) AS o
LEFT JOIN orders FOR SYSTEM_TIME AS OF o.now AS p ON o.product = p.product AND p.amount = 2 AND o.id <> p.id AND p.price > 2
