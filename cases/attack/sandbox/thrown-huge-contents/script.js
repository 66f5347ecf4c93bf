// The contents of what is thrown are cut, however large they are.
throw { rows: Array.from({ length: 20000 }, (_, i) => ({ i, text: 'x'.repeat(20) })) };
