-- table.exec.state.ttl: 36 h
SELECT DISTINCT product, MOD(id, 3) AS part FROM (SELECT * FROM orders WHERE amount > 1) WHERE product <> 'milk'
