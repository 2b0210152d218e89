-- table.local-time-zone: Asia/Kolkata
-- table.exec.state.ttl: 2 d
SELECT who, `at` FROM clicks QUALIFY ROW_NUMBER() OVER (PARTITION BY who ORDER BY `at` ASC) = 1
