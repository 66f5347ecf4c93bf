// prepareStackTrace that never returns.
Error.prepareStackTrace = () => { for (;;) {} };
throw new Error("x");
