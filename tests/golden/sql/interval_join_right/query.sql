SELECT b.customer, a.id, b.id AS other FROM orders a RIGHT JOIN (SELECT * FROM orders WHERE amount > 1) b
ON a.product = b.product AND a.ts >= b.ts - INTERVAL '9' SECOND AND a.ts <= b.ts AND a.id <> b.id WHERE b.id < 12
