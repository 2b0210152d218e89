SELECT id, amount, letter FROM orders LEFT JOIN UNNEST(SPLIT(customer, 'n')) AS letters(letter) ON TRUE WHERE id < 6
