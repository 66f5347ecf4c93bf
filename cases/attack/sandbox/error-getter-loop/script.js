// The message of what is thrown would never come, so it is not asked for.
throw { get message() { for (;;) {} } };
