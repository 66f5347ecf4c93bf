const { csv } = safety.parser;
return {
  "csv.rows": csv("a,b\n1,2\n"),
  "csv.header": csv("name,age\nAda,36\nGrace\n", { header: true }),
  "csv.delimiter": csv("a;b\n1;2", { delimiter: ";" }),
  "csv.delimiter-first": csv("a|b", { delimiter: "|;" }),
  "csv.quoted": csv('"a, b","say ""hi""","two\nlines"'),
  "csv.empty-lines": csv("a\n\nb\n\n"),
  "csv.strings": typeof csv("1,2")[0][0],
  "csv.crlf": csv("a,b\r\nc,d\r\n"),
  "csv.missing-input": await refusal(() => csv()),
  "csv.parse-failed": await refusal(() => csv('"never closed')),
};
