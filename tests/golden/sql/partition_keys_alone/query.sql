SELECT country, `year` FROM sales
