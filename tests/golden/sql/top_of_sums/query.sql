-- fold: true
SELECT product, total FROM (
  SELECT *, ROW_NUMBER() OVER (ORDER BY total DESC, product) AS place FROM (
    SELECT product, SUM(price * amount) AS total FROM orders WHERE product IS NOT NULL GROUP BY product)) WHERE place <= 2
