SELECT id, REGEXP(product, '^[ct]') AS begins, REGEXP_REPLACE(product, '[aeiou]', '.') AS hidden, REGEXP_EXTRACT(product, '(.)(a)', 1) AS before_a, product LIKE '%a%' AS has_a,
  product SIMILAR TO '(tea|milk)' AS drink, product LIKE 't!_%' ESCAPE '!' AS odd
FROM orders WHERE id > 3 AND id < 12
