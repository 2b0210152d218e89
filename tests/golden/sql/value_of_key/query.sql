-- fold: true
SELECT id, price, (SELECT MAX(p.price) FROM orders AS p WHERE p.product = o.product) AS top FROM orders AS o
WHERE price < (SELECT AVG(price) FROM orders)
