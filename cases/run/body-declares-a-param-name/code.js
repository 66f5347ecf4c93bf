const path = "own";
return path;
