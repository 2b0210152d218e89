-- fold: true
SELECT id, product FROM orders AS o
WHERE customer IN (SELECT who FROM clicks WHERE id > 2)
  AND NOT EXISTS (SELECT * FROM ticker AS t WHERE t.price = o.id)
