-- mode: batch
SELECT customer, product, id FROM orders ORDER BY customer DESC NULLS LAST, product ASC NULLS FIRST, amount * -1 NULLS LAST, id DESC
