-- mode: batch
SELECT product, amount FROM orders EXCEPT SELECT product, amount FROM orders WHERE customer = 'ann'
