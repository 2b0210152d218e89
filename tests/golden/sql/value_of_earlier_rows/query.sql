-- fold: true
SELECT id, amount, (SELECT SUM(p.amount) FROM orders AS p WHERE p.id < o.id) AS before_it FROM orders AS o WHERE id > 6
