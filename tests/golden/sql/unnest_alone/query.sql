SELECT x * 2 AS twice, place FROM UNNEST(ARRAY[3, 1, 2]) WITH ORDINALITY AS n(x, place)
