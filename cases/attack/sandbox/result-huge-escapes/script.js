// A string that grows sixfold when escaped.
return "\u0001".repeat(500000);
