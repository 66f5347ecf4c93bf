const said = (name) => { try { Java.type(name); } catch (error) { return error.message; } };
let fields;
try { Java.type("java.lang.String"); } catch (error) { fields = [error instanceof Error, error.kind, error.reason, error.helper]; }
return {
  "java.exists": [typeof Java, typeof Java.type],
  "java.refused": [await refusal(() => Java.type("java.lang.System")), await refusal(() => Java.type("java.lang.Runtime")), await refusal(() => Java.type())],
  "java.error-fields": fields,
  "java.message": ["java.net.http.HttpClient", "java.nio.file.Files", "java.security.MessageDigest", "java.time.ZonedDateTime", "java.lang.String"].map(said),
};
