const error = await fetch("ftp://api.example.com/").catch((caught) => caught);
return {
  "fetch.reason.missing-url": [await refusal(() => fetch()), await refusal(() => fetch("")), await refusal(() => fetch(null))],
  "fetch.reason.invalid-url": [await refusal(() => fetch("not a url")), await refusal(() => fetch("http://a b/")), await refusal(() => fetch("http://user:pw@api.example.com/"))],
  "fetch.reason.unsupported-scheme": [await refusal(() => fetch("ftp://api.example.com/")), await refusal(() => fetch("file:///etc/passwd")), await refusal(() => fetch("data:text/plain,x"))],
  "fetch.reason.missing-host": await refusal(() => fetch("http://")),
  "fetch.error.fields": [error instanceof Error, error.kind, error.reason, error.helper],
  "fetch.error.message": error.message,
};
