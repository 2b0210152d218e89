-- fold: true
SELECT o.id, c.id AS click, g.n FROM orders AS o JOIN clicks AS c ON o.customer = c.who
JOIN (SELECT product, COUNT(*) AS n FROM orders GROUP BY product) AS g ON g.product = o.product WHERE c.id > 10
