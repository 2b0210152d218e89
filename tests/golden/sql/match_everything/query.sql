SELECT id, other, customer, match_time FROM orders
MATCH_RECOGNIZE (
  ORDER BY ts, id DESC
  MEASURES A.id AS id, B.id AS other, B.customer AS customer, MATCH_ROWTIME(ts) AS match_time
  AFTER MATCH SKIP TO NEXT ROW
  PATTERN (A B)
  DEFINE B AS B.id > A.id OR B.customer IS NULL
) WHERE customer <> 'x' OR customer IS NULL
