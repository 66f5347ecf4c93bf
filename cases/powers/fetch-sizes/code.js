return {
  "fetch.limit.body-fits": (await fetch("http://api.example.com/fits")).arrayBuffer().byteLength,
  "fetch.reason.response-body-too-large": await refusal(() => fetch("http://api.example.com/over")),
  "fetch.limit.body-endless": await refusal(() => fetch("http://api.example.com/endless")),
};
