SELECT customer, o.id, w.worth FROM (SELECT *, PROCTIME() AS now FROM orders) AS o
JOIN worths FOR SYSTEM_TIME AS OF o.now AS w USING (customer) WHERE w.worth > 5
