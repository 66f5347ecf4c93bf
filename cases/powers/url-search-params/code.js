let unmade;
try { URLSearchParams("a=1"); } catch (error) { unmade = error.name; }
const params = new URLSearchParams("?a=1&b=2&a=3");
const changed = new URLSearchParams("a=1&b=2&a=3");
changed.set("a", "x");
changed.append("c", "y");
changed.delete("b");
return {
  "params.new-only": unmade,
  "params.from-text": [params.toString(), new URLSearchParams("a=1").toString()],
  "params.from-pairs": new URLSearchParams([["a", "1"], ["a", "2"]]).toString(),
  "params.from-object": new URLSearchParams({ a: 1, b: "two words" }).toString(),
  "params.from-nothing": new URLSearchParams().toString(),
  "params.get": [params.get("a"), params.get("none")],
  "params.getAll": [params.getAll("a"), params.getAll("none")],
  "params.has": [params.has("b"), params.has("none")],
  "params.set-append-delete": changed.toString(),
  "params.form-encoding": [new URLSearchParams({ q: "a b&c=d+é" }).toString(), new URLSearchParams("q=a+b%26").get("q")],
};
