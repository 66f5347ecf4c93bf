return {
  "fetch.reason.timeout": await refusal(() => fetch("http://silent.example.com/")),
  "fetch.limit.connect": await refusal(() => fetch("http://hangs.example.com/")),
  "fetch.limit.first-byte": await refusal(() => fetch("http://api.example.com/never")),
  "fetch.limit.between-bytes": await refusal(() => fetch("http://api.example.com/stops")),
};
