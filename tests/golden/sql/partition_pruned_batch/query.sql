-- mode: batch
SELECT id, price, country FROM sales WHERE country = 'fr' AND `year` > 2023 AND id > 5
