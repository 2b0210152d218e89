-- mode: batch
SELECT product, COUNT(*) FILTER (WHERE amount > 2) AS many FROM orders WHERE price > 2 GROUP BY product
