SELECT o.id, x FROM orders AS o JOIN UNNEST(ARRAY[1, 5, 9]) AS numbers(x) ON x > o.id
