-- fold: true
SELECT a.id, b.id AS cheaper FROM orders AS a
JOIN orders AS b ON a.product = b.product AND a.price > b.price
