SELECT id, product FROM orders WHERE amount > 2 AND product <> 'milk'
