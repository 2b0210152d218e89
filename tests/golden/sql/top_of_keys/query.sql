-- fold: true
SELECT product, id, price, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY product ORDER BY price DESC, id) AS n FROM orders) WHERE n <= 2
