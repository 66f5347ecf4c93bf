const root = safety.parser.xml('<?xml version="1.0"?><a:r xmlns:a="u" k="v"> one <a:c n:x="1" xmlns:n="w">t&amp;u</a:c><![CDATA[ <two> ]]><!-- no --><d/></a:r>');
return {
  "xml.shape": root,
  "xml.tag-prefix": root.tag,
  "xml.attr-prefix": root.children[0].attrs["n:x"],
  "xml.text": [root.text, root.children[0].text, root.children[1].text],
  "xml.doctype": await refusal(() => safety.parser.xml("<!DOCTYPE r><r/>")),
  "xml.parse-failed": [await refusal(() => safety.parser.xml("<r>")), await refusal(() => safety.parser.xml("text")), await refusal(() => safety.parser.xml("<r>&undefined;</r>"))],
  "xml.missing-input": await refusal(() => safety.parser.xml()),
};
