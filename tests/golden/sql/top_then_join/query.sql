-- fold: true
SELECT t.product, t.customer, t.total, c.id AS click FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY product ORDER BY total DESC, customer) AS place FROM (
    SELECT product, customer, SUM(amount) AS total FROM orders WHERE customer IS NOT NULL GROUP BY product, customer)) AS t
LEFT JOIN clicks AS c ON c.who = t.customer AND c.id < 8 WHERE t.place = 1
