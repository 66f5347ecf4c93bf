const none = null;
return 1 + none.missing;
