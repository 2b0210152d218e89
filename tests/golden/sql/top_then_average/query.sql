-- fold: true
SELECT COUNT(*) AS n, AVG(price) AS mean, MIN(price) AS least FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY product ORDER BY price DESC, id) AS place FROM orders) WHERE place <= 2
