SELECT product, FIRST_VALUE(customer) AS first_one, LAST_VALUE(customer) AS last_one FROM orders GROUP BY product
