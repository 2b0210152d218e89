CREATE TABLE orders (
  id BIGINT, customer STRING, product STRING, price DECIMAL(10, 2), amount INT, ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{folder}/orders.csv', 'format' = 'csv');
