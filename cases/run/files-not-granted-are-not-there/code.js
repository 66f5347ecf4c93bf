return [typeof safety.fs, typeof safety.parser.html];
