SELECT id, country FROM sales WHERE country IS NULL OR `year` = 2023
