return {
  "fetch.reason.dns-unknown-host": await refusal(() => fetch("http://gone.example.com/")),
  "fetch.reason.io": [await refusal(() => fetch("http://closed.example.com/")), await refusal(() => fetch("http://api.example.com/reset")), await refusal(() => fetch("http://api.example.com/short")), await refusal(() => fetch("http://api.example.com/noise"))],
  "fetch.reason.tls": await refusal(() => fetch("https://api.example.com/")),
  "fetch.reason.invalid-json": await refusal(async () => (await fetch("http://api.example.com/text")).json()),
};
