const nothing = 1;
