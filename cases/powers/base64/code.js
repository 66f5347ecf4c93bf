return {
  "base64.btoa": [btoa("hi"), btoa(""), btoa("\u00e9\u00ff")],
  "base64.atob": [atob("aGk="), atob(""), atob("6f8=") === "\u00e9\u00ff"],
  "base64.padding-optional": atob("aGk"),
  "base64.white-space": atob(" aG\nk= "),
  "base64.non-latin-1": await refusal(() => btoa("€")),
  "base64.invalid-base64": [await refusal(() => atob("a*b=")), await refusal(() => atob("a")), await refusal(() => atob("aGk=="))],
  "base64.missing-input": [await refusal(() => atob()), await refusal(() => btoa())],
};
