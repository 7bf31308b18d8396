"""Names of files and folders, as texts."""

from inloop.build.starter.library import cases


@cases("a/b/c.txt", "c.tar.gz", "folder/name", "", ".hidden", "x/.env", "README", "img/photo.JPG", "a.b/c", "notes.md")
def extension(path):
    """Give the ending of a file name in lower case."""
    name = path.split("/")[-1]
    dot = name.rfind(".")
    if dot <= 0:
        return ""
    return name[dot + 1 :].lower()


@cases("a/b/c.txt", "c.tar.gz", "name", "", "x/y/z", "dir.d/file", "img.png", "a/b.c.d", ".rc", "deep/er/note.md")
def stem(path):
    """Give the name of a file without its folders and its last ending."""
    name = path.split("/")[-1]
    if "." not in name[1:]:
        return name
    return name[: name.rindex(".")]


@cases(("a", "b"), ("a/", "b"), ("a", "/b"), ("", "b"), ("/root", "x/y"), ("a/b", ""), ("up//", "down"), ("one", "two/three"), ("p", "/q/"), ("/", "etc"))
def join_path(folder, name):
    """Put a folder and a name together; a name from the root stands alone."""
    if name.startswith("/"):
        return name
    if not folder or folder.endswith("/"):
        return folder + name
    return folder + "/" + name


@cases("a/../b", "a/./b", "a//b", "../x", "a/b/..", "./", "x/y/../../z", "p/q", "../../up", "m/./n/../o")
def tidy_path(path):
    """Work out the dots of a path."""
    parts = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part and part != ".":
            parts.append(part)
    return "/".join(parts)


@cases("a/b/c", "c", "/root", "x/y/", "", "deep/er/still/file.py", "/a/b", "one/two", "/", "p/q.r/s")
def parent(path):
    """Give the folder that a path lies in."""
    path = path.rstrip("/")
    cut = path.rfind("/")
    if cut < 0:
        return "."
    return path[:cut] or "/"


@cases(("a.txt", "md"), ("a", "py"), ("a.b/c.d", "e"), ("x.tar.gz", "zip"), (".rc", "bak"), ("dir/file.c", "o"), ("note.", "md"), ("p/q", "r"), ("one.two", "three"), ("img.jpeg", "png"))
def with_extension(path, ending):
    """Give a file another ending."""
    folder, mark, name = path.rpartition("/")
    dot = name.rfind(".")
    if dot > 0:
        name = name[:dot]
    return folder + mark + name + "." + ending


@cases(("a/b/c", "a"), ("a/b", "a/b"), ("x/y", "z"), ("src/app/main.py", "src"), ("abc/d", "ab"), ("m/n/o", "m/n"), ("p", "p"), ("q/r", "q/r/s"), ("lib/a.py", "lib"), ("one/two", "on"))
def relative_to(path, folder):
    """Give the rest of a path below a folder, or nothing if it lies elsewhere."""
    parts, base = path.split("/"), folder.split("/")
    if parts[: len(base)] != base:
        return None
    return "/".join(parts[len(base) :]) or "."


@cases((["a.py", "b.txt", "c.py"], "py"), ([], "x"), (["x.PY"], "py"), (["noext"], "noext"), (["a.md", "b.md"], "md"), (["a.tar.gz", "b.gz"], "gz"), (["py", "a.py"], "py"),
       (["m.c", "n.h", "o.cc"], "c"), (["q.Md", "r.mD"], "md"), (["one.txt", "two.TXT", "three.text"], "txt"))
def with_ending(names, ending):
    """Keep the files with an ending, whatever its case."""
    kept = []
    for name in names:
        if name.lower().endswith("." + ending):
            kept.append(name)
    return kept


@cases((["a.txt"], "a.txt"), ([], "b.txt"), (["a.txt", "a-1.txt"], "a.txt"), (["x"], "y"), (["n.md", "n-1.md", "n-2.md"], "n.md"), (["c.py", "c-2.py"], "c.py"), (["p.q"], "p.q"), (["m.c", "m-1.c"], "m.h"),
       (["z.gz", "z-1.gz"], "z.gz"), (["k.js"], "k.js"))
def free_name(taken, name):
    """Find a file name that is not taken by adding a number."""
    base, dot, ending = name.partition(".")
    number = 0
    while name in taken:
        number += 1
        name = base + "-" + str(number) + dot + ending
    return name


@cases((["a/x", "a/y"],), (["b/x", "a/x"],), (["a/b/c", "a/b/d", "a/e"],), (["one"],), (["p/q/r", "p/q/s"],), (["m/n", "m/n/o"],), (["src/a.py", "src/b.py", "src/lib/c.py"],), (["k/l", "kl/m"],),
       (["u/v/w", "u/v/w"],), (["x", "y"],))
def common_folder(paths):
    """Give the deepest folder that all paths share."""
    shared = paths[0].split("/")[:-1]
    for path in paths[1:]:
        parts = path.split("/")[:-1]
        while shared != parts[: len(shared)]:
            shared.pop()
    return "/".join(shared)


@cases((["a/b.py", "a/c.py", "d.py"],), ([],), (["x"],), (["p/q", "p/r", "s/t"],), (["m/n/o", "m/n/p"],), (["one/a", "two/a", "one/b"],), (["f.txt", "g.txt"],), (["k/l.c"],), (["u/v", "w", "u/x"],),
       (["deep/er/f", "deep/g"],))
def by_folder(paths):
    """Collect file names under their folder."""
    folders = {}
    for path in paths:
        folder, mark, name = path.rpartition("/")
        folders.setdefault(folder or ".", []).append(name)
    return folders
