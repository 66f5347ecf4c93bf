const value = await Promise.resolve(a + b);
return value;
