SELECT id, 1 + 2 * 3 AS seven, UPPER('abc') AS abc, CASE WHEN 1 = 2 THEN 0 WHEN 1 = 1 THEN amount ELSE 1 / 0 END AS c
FROM orders WHERE (TRUE AND id > 2 + 3) OR 1 > 2
