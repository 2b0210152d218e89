-- fold: true
SELECT customer, id, click, place FROM (
  SELECT o.customer, o.id, c.id AS click, ROW_NUMBER() OVER (PARTITION BY o.customer ORDER BY c.ms DESC, o.id) AS place
  FROM orders AS o JOIN clicks AS c ON o.customer = c.who) WHERE place <= 2
