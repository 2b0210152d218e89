CREATE TABLE orders (
  id BIGINT, customer STRING, product STRING, price DECIMAL(10, 2), amount INT, ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{folder}/orders.csv', 'format' = 'csv', 'csv.null-literal' = '');
CREATE TABLE sales (
  id BIGINT, item ROW<name STRING, tags ARRAY<STRING>>, price DECIMAL(10, 2), `at` TIMESTAMP(3),
  extra MAP<STRING, STRING>, country STRING, `year` INT, file STRING METADATA FROM 'file.name' VIRTUAL,
  WATERMARK FOR `at` AS `at` - INTERVAL '1' MINUTE
) PARTITIONED BY (country, `year`) WITH ('connector' = 'filesystem', 'path' = '{folder}/sales', 'format' = 'json');
CREATE TABLE clicks (
  id BIGINT, who STRING, ms BIGINT, `at` AS TO_TIMESTAMP_LTZ(ms, 3), WATERMARK FOR `at` AS `at` - INTERVAL '1' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{folder}/clicks.csv', 'format' = 'csv', 'csv.null-literal' = '');
CREATE VIEW worths AS SELECT customer, price * amount AS worth, ts FROM orders WHERE customer IS NOT NULL AND amount > 1;
CREATE TABLE ticker (
  symbol STRING, price INT, tax INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH ('connector' = 'filesystem', 'path' = '{folder}/ticker.csv', 'format' = 'csv', 'csv.null-literal' = '');
