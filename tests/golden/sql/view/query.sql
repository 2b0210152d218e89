SELECT customer, worth FROM worths WHERE worth > 7
