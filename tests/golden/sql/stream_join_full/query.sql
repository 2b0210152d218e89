-- fold: true
SELECT o.id, o.product, t.symbol, t.price FROM orders AS o FULL JOIN ticker AS t ON o.id = t.price
