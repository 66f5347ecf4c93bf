// An endless callback inside replace.
return "abc".replace(/./g, () => { for (;;) {} });
