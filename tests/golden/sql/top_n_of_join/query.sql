SELECT id, other, window_end FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY other DESC, id DESC) AS rn FROM (
    SELECT L.id, R.id AS other, L.window_start, L.window_end FROM (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))) AS L JOIN (SELECT * FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND))) AS R
    ON L.product = R.product AND L.window_start = R.window_start AND L.window_end = R.window_end))
WHERE rn <= 2
