# Writes a tiny index for pip and a tiny registry for npm, with one package each, into a
# folder. Arguments: the host they are served at, the folder.
import base64
import hashlib
import io
import json
import os
import sys
import tarfile
import zipfile

host, folder = sys.argv[1:]


def write(path, data):
    path = os.path.join(folder, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


wheel = io.BytesIO()
with zipfile.ZipFile(wheel, "w") as archive:
    archive.writestr("labpack/__init__.py", "WORD = 'packed by the lab'\n")
    about = "labpack-1.0.dist-info"
    archive.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: labpack\nVersion: 1.0\n")
    archive.writestr(
        f"{about}/WHEEL",
        "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    )
    names = ["labpack/__init__.py", f"{about}/METADATA", f"{about}/WHEEL", f"{about}/RECORD"]
    archive.writestr(f"{about}/RECORD", "".join(f"{name},,\n" for name in names))
name = "labpack-1.0-py3-none-any.whl"
digest = hashlib.sha256(wheel.getvalue()).hexdigest()
write(f"files/{name}", wheel.getvalue())
page = f'<!DOCTYPE html><html><body><a href="/files/{name}#sha256={digest}">{name}</a></body></html>'
write("simple/labpack/index.html", page.encode())

tarball = io.BytesIO()
with tarfile.open(fileobj=tarball, mode="w:gz") as archive:
    manifest = json.dumps({"name": "labpack", "version": "1.0.0", "main": "index.js"})
    for path, text in [
        ("package/package.json", manifest),
        ("package/index.js", "module.exports = 'packed by the lab';\n"),
    ]:
        entry = tarfile.TarInfo(path)
        entry.size = len(text)
        entry.mode = 0o644
        archive.addfile(entry, io.BytesIO(text.encode()))
integrity = base64.b64encode(hashlib.sha512(tarball.getvalue()).digest()).decode()
write("npm/labpack/-/labpack-1.0.0.tgz", tarball.getvalue())
packument = {
    "name": "labpack",
    "dist-tags": {"latest": "1.0.0"},
    "versions": {
        "1.0.0": {
            "name": "labpack",
            "version": "1.0.0",
            "main": "index.js",
            "dist": {
                "tarball": f"https://{host}/npm/labpack/-/labpack-1.0.0.tgz",
                "integrity": f"sha512-{integrity}",
            },
        }
    },
}
write("npm/labpack.json", json.dumps(packument).encode())
