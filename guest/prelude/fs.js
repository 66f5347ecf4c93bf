// safety.fs: each function is one direct call, and its own power, so that what is
// not granted is not there. Arguments go as they are, in order; what was left out
// travels as null. The host refuses the rest again, whatever the guest believes.
(host) => {
  const { direct } = host;
  const { hasOwn } = Object;
  // Made for each run: what is in the image cannot be added to.
  const home = (global) => {
    if (!hasOwn(global.safety, "fs")) global.safety = { ...global.safety, fs: {} };
    return global.safety.fs;
  };
  const functions =
    "workspace readRoots readText list exists stat grep lineCount slice cut sort find searchInFiles " +
    "writeText appendText editText copy move delete deleteDir";
  for (const name of functions.split(" ")) {
    const operation = `fs.${name}`;
    host.face(operation, (global) => {
      home(global)[name] = (...values) => direct(operation, values.map((value) => value ?? null));
    });
  }
}
