SELECT o.id, p.customer, q.amount FROM (SELECT *, PROCTIME() AS now FROM orders) AS o
JOIN orders FOR SYSTEM_TIME AS OF o.now AS p ON o.id + 1 = p.id
LEFT JOIN orders FOR SYSTEM_TIME AS OF o.now AS q ON p.id = q.id AND p.amount = q.amount AND q.product = 'tea'
