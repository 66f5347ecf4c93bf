const { yaml } = safety.parser;
return {
  "yaml.plain": yaml("name: Ada\nlist:\n  - 1\n  - 2.5\n  - text\nnested: {a: [true, null]}\n"),
  "yaml.one-one": yaml("yes: on\noctal: 010\nhex: 0x1f\nunder: 1_000\ntilde: ~\n"),
  "yaml.multi-line": yaml("a: |\n  one\n  two\nb: >\n  one\n  two\n"),
  "yaml.alias": yaml("a: &x [1]\nb: *x\n"),
  "yaml.merge": yaml("base: &b {x: 1, y: 2}\nown:\n  <<: *b\n  y: 3\n"),
  "yaml.no-objects": await refusal(() => yaml("!!javax.script.ScriptEngineManager [x]")),
  "yaml.one-document": await refusal(() => yaml("a: 1\n---\nb: 2\n")),
  "yaml.parse-failed": await refusal(() => yaml("a: [1, 2")),
  "yaml.missing-input": await refusal(() => yaml()),
};
