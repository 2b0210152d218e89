-- mode: batch
SELECT id, ts FROM orders WHERE amount > 0 ORDER BY ts DESC OFFSET 2 ROWS FETCH NEXT 4 ROWS ONLY
