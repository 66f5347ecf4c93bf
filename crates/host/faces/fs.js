// safety.fs as tool code sees it. Draft: the prelude of the guest takes it in.
//
// The wire: each function is one direct host call, `direct('fs.<function>', [args...])`,
// which suspends the guest and gives back the value, or throws the fault as an
// error with `kind`, `reason`, `helper` and `message`. Arguments go as they are,
// in order; what was left out (`undefined`) travels as `null`. No function takes
// or gives bytes beside its JSON.
//
// What is not granted is not there: `typeof safety.fs.writeText` is 'undefined'
// without the write grant, and `safety.fs` itself is 'undefined' without either.
// `granted` is what `host::files::Files::functions` says for this call. The host
// refuses the rest again (SECURITY not-granted), whatever the guest was made to do.
//
//   always  workspace()                                    absolute path
//           readRoots()                                    [absolute path]
//   read    readText(path)                                 text
//           list(dir = '.')                                [display path]
//           exists(path)                                   boolean
//           stat(path)                                     {size, mtime, directory}
//           grep(pattern, path, {caseInsensitive, limit, numbered}?)         [line]
//           lineCount(path)                                number
//           slice(path, start?, end?)                      [line]
//           cut(path, {fields, delimiter?, regex?})        [text]
//           sort(path, {reverse, numeric, caseInsensitive, unique}?)         [line]
//           find(dir = '.', glob = '*', {maxDepth, type}?) [display path]
//           searchInFiles(dir, glob, pattern, {caseInsensitive, maxDepth, limit}?)
//                                                          [{file, line, text}]
//   write   writeText(path, content = '')                  absolute path
//           appendText(path, content = '')                 absolute path
//           editText(path, old, new, replaceAll = false)   {path, replacements}
//           copy(from, to)                                 absolute path
//           move(from, to)                                 absolute path
//           delete(path)                                   boolean
//           deleteDir(path)                                number
function makeFs(direct, granted) {
  if (granted.length === 0) return undefined;
  const fs = {};
  for (const name of granted) {
    const call = 'fs.' + name;
    fs[name] = (...args) => direct(call, args.map((arg) => (arg === undefined ? null : arg)));
  }
  return Object.freeze(fs);
}
