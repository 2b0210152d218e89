-- mode: batch
SELECT COUNT(*) AS n, SUM(amount) AS total, MIN(customer) AS first FROM orders WHERE amount > 1000
