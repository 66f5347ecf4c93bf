// Java: documents of the reference runtime may try `Java.type`. There is no Java
// here, and the error says what to use instead.
(host) => {
  const instead = [
    [/^(java\.net\.|javax\.net\.|java\.nio\.channels\.Socket)/, "fetch"],
    [/^org\.jsoup\./, "fetch and safety.parser.html"],
    [/^(java\.io\.|java\.nio\.)/, "safety.fs"],
    [/^(java\.security\.|javax\.crypto\.)/, "crypto.subtle and crypto.getRandomValues"],
    [/^java\.util\.UUID$/, "crypto.randomUUID"],
    [/^java\.util\.Base64/, "atob and btoa"],
    [/^java\.util\.regex\./, "RegExp"],
    [/^(java\.time\.|java\.text\.|java\.util\.(Date|Calendar|TimeZone))/, "Date and Intl"],
    [/^java\.math\./, "Number and BigInt"],
    [/^java\.util\./, "Array, Map and Set"],
    [/^javax\.xml\./, "safety.parser.xml"],
  ];
  const type = (name) => {
    const wanted = `${name}`.slice(0, 120);
    const use = instead.find(([pattern]) => pattern.test(wanted))?.[1] ?? "plain JavaScript";
    const error = new Error(`[Java.type] denied: there is no Java here, so not \`${wanted}\`; use ${use}`);
    throw Object.assign(error, { kind: "SECURITY", reason: "java-not-available", helper: "Java.type" });
  };
  host.reserve("Java", Object.freeze({ type }));
}
