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
CREATE VIEW rates AS SELECT symbol, price, ts FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY symbol ORDER BY ts DESC) AS n FROM ticker) WHERE n = 1;
CREATE TABLE nexmark_events (
  event_type INT,
  person ROW<id BIGINT, `dateTime` TIMESTAMP(3)>,
  auction ROW<id BIGINT, `dateTime` TIMESTAMP(3)>,
  bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING>,
  `dateTime` AS CASE
    WHEN event_type = 0 THEN person.`dateTime`
    WHEN event_type = 1 THEN auction.`dateTime`
    ELSE bid.`dateTime`
  END,
  WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH ('connector' = 'nexmark', 'first-event.rate' = '1000', 'next-event.rate' = '1000', 'events.num' = '400');
CREATE VIEW bid AS
SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, `dateTime`, bid.extra
FROM nexmark_events WHERE event_type = 2;
