# Tries to read and to change what it was not given. Arguments: a file to read, a folder
# to write into.
import os
import sys

secret, folder = sys.argv[1:]
target = os.path.join(folder, "file")


def write(path, mode="w"):
    with open(path, mode) as file:
        file.write("written")


def find():
    # A folder that only leads to what is given may be seen; what else is in it may not.
    if os.path.basename(secret) not in os.listdir(os.path.dirname(secret)):
        raise FileNotFoundError(2, "not in the list")


def by_link():
    os.symlink(secret, "link")
    try:
        open("link").read()
    finally:
        os.unlink("link")


def by_hard_link():
    os.link(secret, "hard")
    os.unlink("hard")


def rename():
    other = os.path.join(folder, "renamed")
    os.rename(target, other)
    os.rename(other, target)


attempts = {
    "read": lambda: open(secret).read(),
    "list": find,
    "link": by_link,
    "hard_link": by_hard_link,
    "append": lambda: write(target, "a"),
    "truncate": lambda: os.truncate(target, 3),
    "create": lambda: write(os.path.join(folder, "new")),
    "folder": lambda: os.mkdir(os.path.join(folder, "sub")),
    "rename": rename,
    "remove": lambda: os.unlink(os.path.join(folder, "removable")),
}
for name, attempt in attempts.items():
    try:
        attempt()
        print(name, "done")
    except OSError as error:
        # Across what is given and what is not, the kernel says EXDEV. What is not given is
        # closed or not there, and what is given for reading may be a read-only mount.
        print(name, "refused" if error.errno in (1, 2, 13, 18, 30) else f"failed: {error}")
