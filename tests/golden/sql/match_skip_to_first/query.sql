SELECT * FROM ticker
MATCH_RECOGNIZE (
  PARTITION BY symbol
  ORDER BY ts
  MEASURES FIRST(A.price) AS a, FIRST(B.price) AS b, LAST(B.price) AS last_b, FIRST(B.price, 1) AS second_b, C.tax AS tax
  AFTER MATCH SKIP TO FIRST B
  PATTERN (A B{1,3} C)
  DEFINE B AS B.price > A.price, C AS C.tax < LAST(B.tax)
)
