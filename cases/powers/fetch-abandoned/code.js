fetch("http://silent.example.com/");
await fetch("http://api.example.com/");
return "the first is still under way";
