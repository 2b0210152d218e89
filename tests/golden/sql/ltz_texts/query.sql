-- table.local-time-zone: Europe/Berlin
SELECT id, CAST(`at` AS STRING) AS told, CAST(`at` AS TIMESTAMP(3)) AS here, EXTRACT(HOUR FROM `at`) AS h, DATE_FORMAT(`at`, 'yyyy-MM-dd HH:mm') AS f FROM clicks
