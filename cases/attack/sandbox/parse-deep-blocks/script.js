// A hundred thousand blocks inside each other.
return eval("{".repeat(100000));
