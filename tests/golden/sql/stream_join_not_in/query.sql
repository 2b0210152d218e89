-- fold: true
SELECT id, amount FROM orders WHERE amount NOT IN (SELECT id FROM clicks WHERE id > 1 AND who = 'ann')
