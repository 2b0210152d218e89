SELECT UPPER(product) || '!' AS loud FROM orders GROUP BY product, customer HAVING customer IS NOT NULL
