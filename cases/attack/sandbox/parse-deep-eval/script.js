// Half a million parentheses, evaluated.
return eval("(".repeat(500000));
