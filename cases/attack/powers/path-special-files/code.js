const { fs } = safety;
const said = {};
for (const path of ["pipe", "null", "random", "/dev/zero", "/proc/self/environ", "/proc/self/mem"]) said[path] = [await refusal(() => fs.readText(path)), await refusal(() => fs.grep("a", path)), await refusal(() => fs.copy(path, "taken"))];
return said;
