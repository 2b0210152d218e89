SELECT id, UPPER(product) || '-' || LOWER(customer) AS joined, SUBSTRING(product, 2, 2) AS part, CHAR_LENGTH(product) AS letters,
  TRIM(LEADING 't' FROM product) AS trimmed, REPLACE(product, 'a', 'aa') AS doubled, LPAD(customer, 5, '*') AS padded, REVERSE(product) AS turned,
  POSITION('a' IN product) AS place, CONCAT_WS('/', customer, product) AS path, INITCAP(product) AS title
FROM orders WHERE id IN (1, 4, 5, 11)
