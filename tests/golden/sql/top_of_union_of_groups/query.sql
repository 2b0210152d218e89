-- fold: true
SELECT name, n, place FROM (
  SELECT name, n, ROW_NUMBER() OVER (ORDER BY n DESC, name) AS place FROM (
    SELECT customer AS name, COUNT(*) AS n FROM orders WHERE customer IS NOT NULL GROUP BY customer
    UNION ALL SELECT product, COUNT(*) FROM orders WHERE product IS NOT NULL GROUP BY product)) WHERE place <= 4
