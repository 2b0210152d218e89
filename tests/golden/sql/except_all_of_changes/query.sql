-- fold: true
SELECT product FROM (SELECT product, customer FROM orders GROUP BY product, customer) EXCEPT ALL SELECT product FROM orders WHERE id < 4
