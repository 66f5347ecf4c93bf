return {
  "guard.allowlist.star": (await fetch("http://api.example.com/")).text(),
  "guard.allowlist.star-inside": [await refusal(() => fetch("http://127.0.0.1/")), await refusal(() => fetch("http://inside.example.com/"))],
};
