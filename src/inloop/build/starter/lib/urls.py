"""Addresses of pages and their queries, as texts."""

from inloop.build.starter.library import cases


@cases("http://a.com/x", "https://B.org", "ftp://u:p@c.net:21/f", "d.com/path", "//e.io?q=1", "http://f.com#top", "http://g.com:80", "/only/path", "", "http://me@h.de/@x", "https://i.com?u=http://j.com")
def url_host(url):
    """Find the host of an address, in small letters."""
    rest = url.split("//", 1)[-1]
    for mark in "/?#":
        rest = rest.split(mark, 1)[0]
    host = rest.split("@")[-1]
    return host.split(":")[0].lower()


@cases("http://a.com", "https://a.com/x", "http://a.com:8080/x", "ftp://f.org", "a.com:99", "gopher://g", "http://u:7@b.com/", "https://c.de:443", "http://d.com/x:9", "HTTPS://e.com", "http://f.com:/x")
def url_port(url):
    """Find the port of an address, or the usual one of its scheme."""
    ports = {"http": 80, "https": 443, "ftp": 21}
    scheme, mark, rest = url.partition("://")
    if not mark:
        scheme, rest = "http", url
    server = rest.split("/")[0].split("@")[-1]
    port = server.partition(":")[2]
    if port.isdigit():
        return int(port)
    return ports.get(scheme.lower(), 0)


@cases("http://a.com/x/y", "http://a.com", "http://a.com/x//y/", "/p/q?r=/s", "http://b.org/%20z/#t/u", "c/d", "", "http://e.com/?x", "http://f.com/a/./b", "/g/../h", "//i.com/j")
def path_pieces(url):
    """List the pieces of the path of an address, without empty ones and single dots."""
    path = url.split("#")[0].split("?")[0]
    if "//" in path[:8]:
        rest = path.split("//", 1)[1]
        path = rest.partition("/")[2]
    pieces = []
    for piece in path.split("/"):
        if piece and piece != ".":
            pieces.append(piece)
    return pieces


@cases("http://a.com?x=1&y=2", "a?x=1&x=2&x=3", "a", "a?", "a?flag", "b?k=v#frag=1", "c?q=a+b", "d?=1&e=", "f?x=1=2", "g?m=1&&n=2", "h#x?y=1")
def query_lists(url):
    """Read the query of an address: each key with the list of its values."""
    fields = {}
    query = url.split("#")[0].partition("?")[2]
    for pair in query.split("&"):
        key, _, value = pair.partition("=")
        if not key:
            continue
        values = fields.setdefault(key, [])
        values.append(value.replace("+", " "))
    return fields


@cases(("a.com", "x", 1), ("a.com?y=2", "x", 1), ("a.com?x=2", "x", 3), ("a.com#top", "p", "q"), ("a.com?x=1&y=2#e", "x", "n"), ("b?xx=1", "x", 2), ("c?", "k", "v"), ("d?f", "f", "on"), ("e?a=1&a=2", "a", 3), ("f?a=1&b=2", "c", 3))
def set_query_field(url, key, value):
    """Give a field of the query a value, in place of an older one; the fragment stays last."""
    address, mark, fragment = url.partition("#")
    base, _, query = address.partition("?")
    pairs = []
    for pair in query.split("&"):
        if pair and pair.split("=")[0] != key:
            pairs.append(pair)
    pairs.append(f"{key}={value}")
    return base + "?" + "&".join(pairs) + mark + fragment


@cases("a.com?utm_source=x&id=7", "a.com", "b.org?fbclid=1", "c?utm=1&x=2", "d?q=1&UTM_medium=m", "e?gclid=9#top", "f?a=1&utm_id=2&b=3", "g?ref=me#utm_x=1", "h?id=1&id=2", "i?x", "j?gclid2=1&fbclid=2")
def strip_tracking(url):
    """Remove the fields of the query that only follow the reader around."""
    address, mark, fragment = url.partition("#")
    base, _, query = address.partition("?")
    kept = []
    for pair in query.split("&"):
        key = pair.split("=")[0].lower()
        if key and not key.startswith("utm_") and key not in ("gclid", "fbclid"):
            kept.append(pair)
    if kept:
        base += "?" + "&".join(kept)
    return base + mark + fragment


@cases(("http://a.com/x/y", "z"), ("http://a.com/x/y", "/z"), ("http://a.com", "z"), ("http://a.com/x/", "z"), ("http://a.com/x/y", "../z"), ("http://a.com", "http://b.org"), ("http://a.com/x", "./d"), ("https://a.com/x/y", "q/../r"),
       ("https://a.com/", "../../z"), ("http://a.com/p/q/r", "../s"), ("http://a.com/x/y/z", "../../w"), ("ftp://a.com/x/y", "/u/v"))
def join_url(base, link):
    """Find the address that a link on a page leads to."""
    if "://" in link:
        return link
    scheme, _, host, *folders = base.split("/")
    if link.startswith("/"):
        return scheme + "//" + host + link
    folders = folders[:-1]
    for piece in link.split("/"):
        if piece == "..":
            del folders[-1:]
        elif piece != ".":
            folders.append(piece)
    return "/".join([scheme, "", host, *folders])


@cases(("http://a.com/x", "https://www.a.com"), ("http://a.com", "http://b.com"), ("a.com", "a.com/y"), ("http://A.com", "http://a.com"), ("http://x.a.com", "http://a.com"), ("http://a.com:80", "a.com"), ("wwww.a.com", "a.com"),
       ("http://a.com?x", "http://a.com"), ("www.b.org/q", "WWW.B.org"), ("http://a.com:80", "a.com:81"))
def same_site(first, second):
    """Tell if two addresses have one host, whatever the scheme, the port or a leading www."""
    hosts = []
    for url in (first, second):
        server = url.lower().split("://")[-1].replace("?", "/").split("/")[0]
        host = server.partition(":")[0]
        if host.startswith("www."):
            host = host[4:]
        hosts.append(host)
    return hosts[0] == hosts[1]


@cases("a b", "x=1&y", "safe-text_1.0~", "", "50%", "/p/q", "a+b", "tab\there", "Z?", "q#", "[1]")
def percent_coded(text):
    """Write every character but letters, digits and -_.~ as % and its hex code."""
    coded = []
    for letter in text:
        if letter.isalnum() or letter in "-_.~":
            coded.append(letter)
        else:
            code = hex(ord(letter))[2:].upper()
            coded.append("%" + code.zfill(2))
    return "".join(coded)


@cases("a%20b", "100%25", "a+b", "%", "%4", "%41%42", "x%zz", "", "%2Fp%2fq", "plain", "c%2Bd+e")
def percent_plain(text):
    """Read text from an address: a plus is a blank, % and two hex digits are a character."""
    head, *pieces = text.replace("+", " ").split("%")
    result = head
    for piece in pieces:
        code = piece[:2].lower()
        is_hex = len(code) == 2 and all(digit in "0123456789abcdef" for digit in code)
        if is_hex:
            result += chr(int(code, 16)) + piece[2:]
        else:
            result += "%" + piece
    return result


@cases("www.shop.example.com", "example.com", "a.b.co.uk", "localhost", "bbc.co.uk", "x.y.z.org", "co.uk", "Mail.Site.DE", "a.b.com.au", "n.com.", "www.org.uk")
def main_domain(host):
    """Find the part of a host that someone can own, such as example.com or bbc.co.uk."""
    parts = host.lower().strip(".").split(".")
    size = 2
    if len(parts) > 2 and len(parts[-1]) == 2:
        if parts[-2] in ("co", "com", "org"):
            size += 1
    return ".".join(parts[-size:])


@cases("HTTP://A.com:80/", "https://b.org:443/x/", "http://c.com:8080", "http://d.com/X/Y", "https://e.com:80/", "HTTP://F.net", "http://g.com:443/p", "http://h.com//", "https://I.COM/q/", "ftp://j.com:80/k", "http://k.com/L/:80")
def tidy_url(url):
    """Write scheme and host small and leave out the usual port and slashes at the end."""
    scheme, _, rest = url.partition("://")
    scheme = scheme.lower()
    server, slash, path = rest.rstrip("/").partition("/")
    host, _, port = server.lower().partition(":")
    usual = {"http": "80", "https": "443"}.get(scheme)
    if port and port != usual:
        host += ":" + port
    return scheme + "://" + host + slash + path


@cases("http://ann:pw@a.com", "http://a.com", "ftp://bob@b.org/x", "http://c.com/@d", "http://e:f:g@h.com", "http://:pw@i.com", "j@k.com", "http://l.com?m=n@o", "http://p:@q.com", "https://r@s@t.com/u@v", "")
def url_login(url):
    """Find the user and the password in an address."""
    rest = url.split("://")[-1]
    server = rest.replace("?", "/").split("/")[0]
    if "@" not in server:
        return ("", "")
    login = server.rpartition("@")[0]
    user, _, password = login.partition(":")
    return (user, password)


@cases(("/users/:id", "/users/7"), ("/a/b", "/a/b"), ("/a/:x/:y", "/a/1/2"), ("/a", "/b"), ("/u/:id", "/u"), ("/u/:id", "/u/"), ("/:p/edit", "/doc/edit"), ("/:p/edit", "/doc/view"), ("/x/", "/x"), ("/f/:n", "/f/a/b"), ("/k/:v/", "/k/w/"))
def route_fields(pattern, path):
    """Fit a path to a pattern with :names and give the values of the names, or None."""
    wanted = pattern.strip("/").split("/")
    pieces = path.strip("/").split("/")
    fits = len(wanted) == len(pieces)
    fields = {}
    for part, piece in zip(wanted, pieces):
        if part.startswith(":"):
            fields[part[1:]] = piece
        elif part != piece:
            fits = False
    return fields if fits else None
