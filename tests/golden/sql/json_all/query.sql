SELECT * FROM sales
