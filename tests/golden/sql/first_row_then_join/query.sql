-- fold: true
SELECT a.product, a.id AS earliest, b.id FROM (
  SELECT product, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY product ORDER BY ts) AS n FROM orders) WHERE n = 1) AS a
JOIN orders AS b ON a.product = b.product AND b.id > a.id
