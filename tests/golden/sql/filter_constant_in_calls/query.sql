SELECT id, amount + 1 AS more, UPPER(product) || '!' AS shout FROM orders WHERE product = 'cake' AND amount = 1
