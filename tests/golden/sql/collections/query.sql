SELECT id, ARRAY[product, customer] AS a, CARDINALITY(ARRAY[amount, 1]) AS c, ARRAY[1, amount][2] AS b, MAP['p', price]['p'] AS p, MAP['p', price]['q'] AS q,
  ARRAY_CONTAINS(ARRAY[1, amount], 4) AS has_four, ARRAY_DISTINCT(ARRAY[amount, 1, amount]) AS once, ARRAY_REVERSE(ARRAY[1, amount]) AS turned, ELEMENT(ARRAY[id]) AS e,
  ARRAY_POSITION(ARRAY['tea', 'milk'], product) AS place, ROW(id, product) AS r
FROM orders WHERE id < 7
