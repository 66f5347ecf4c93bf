const { xml, yaml, html, csv } = safety.parser;
const laughs = ["a: &a [x,x,x,x,x,x,x,x,x]", ..."bcdefghi".split("").map((name, at) => `${name}: &${name} [${Array(9).fill(`*${"abcdefghi"[at]}`)}]`)].join("\n");
return {
  "XML entities": await refusal(() => xml('<!DOCTYPE r [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><r>&b;</r>')),
  "XML from a file": await refusal(() => xml('<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><r>&x;</r>')),
  "XML from the network": await refusal(() => xml('<!DOCTYPE r SYSTEM "http://127.0.0.1/x.dtd"><r/>')),
  "XML deep": await refusal(() => xml("<a>".repeat(100000) + "</a>".repeat(100000))),
  "YAML laughs": await refusal(() => yaml(laughs)),
  "YAML deep": await refusal(() => yaml("[".repeat(100000) + "]".repeat(100000))),
  "YAML recursive": await refusal(() => yaml("&a [*a]")),
  "YAML objects": await refusal(() => yaml("!!python/object/apply:os.system ['id']")),
  "HTML deep": await refusal(() => html("<div>".repeat(100000))),
  "CSV wide": await refusal(() => csv(",".repeat(5000000))),
};
