// The message of the error never comes.
throw { get message() { for (;;) {} } };
