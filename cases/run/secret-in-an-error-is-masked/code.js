throw new Error("bad token " + token);
