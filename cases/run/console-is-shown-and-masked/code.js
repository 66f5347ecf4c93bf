console.log("token is", token);
console.error({ nested: token });
return { token, plain: "ok" };
