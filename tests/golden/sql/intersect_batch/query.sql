-- mode: batch
SELECT amount FROM orders WHERE product = 'tea' INTERSECT SELECT amount FROM orders WHERE product = 'cake'
