return typeof console.log;
