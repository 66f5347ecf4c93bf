return {
  "guard.scheme.open": [await refusal(() => fetch("gopher://api.example.com/")), await refusal(() => fetch("ws://api.example.com/"))],
  "guard.scheme.hop": await refusal(() => fetch("http://api.example.com/away")),
};
