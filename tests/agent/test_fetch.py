"""dr/agent/fetch.py and what it is made of, against a real site: redirects, limits, patience, private addresses."""

from __future__ import annotations

import datetime
import email.utils
import gzip
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from website import ARTICLE, CHINESE, JAPANESE, Website

from dr.agent import addresses
from dr.agent.fetch import Fetcher, Limits, Page, clean_url
from dr.agent.hosts import HostLocks
from dr.agent.unpack import Body
from dr.agent.unreadable import Unreadable
from dr.agent.web import read_page


def fetcher(root: Path, **other: Any) -> Fetcher:
    """Waits are told to nobody; a test that waits names its own `sleep`."""

    def unexpected(seconds: float) -> None:
        raise AssertionError(f"it waits {seconds} s")

    return Fetcher(HostLocks(root / "hosts"), **({"allow_private": True, "sleep": unexpected} | other))


def fault(fetch: Fetcher, url: str) -> Unreadable:
    with pytest.raises(Unreadable) as raised:
        fetch.fetch(url)
    return raised.value


def text(page: Page) -> str:
    return "\n".join(p.text for p in read_page(page).passages)


def test_a_page_with_what_the_server_says_of_it(tmp_path: Path, site: Website) -> None:
    page = fetcher(tmp_path).fetch(f"{site.url}/article#part")
    assert (page.url, page.final_url) == (f"{site.url}/article", f"{site.url}/article")
    assert (page.media_type, page.charset) == ("text/html", "utf-8")
    document = read_page(page)
    assert document.title == "Harlow lighthouse" and ARTICLE[:60] in document.passages[0].text
    assert "About us" not in text(page) and "All rights" not in text(page)
    assert {(p.kind, p.place) for p in document.passages} == {("web", f"{site.url}/article")}
    agent = site.headers[0]["User-Agent"]
    assert "dr-runner" in agent and "br" not in site.headers[0]["Accept-Encoding"]


@pytest.mark.parametrize("path", ["to-article", "hop", "to-umlaut", "cookie"])
def test_redirects_are_followed(tmp_path: Path, site: Website, path: str) -> None:
    page = fetcher(tmp_path).fetch(f"{site.url}/{path}")
    assert page.url == f"{site.url}/{path}" and b"Harlow" in page.data
    assert path == "cookie" or page.final_url != page.url


@pytest.mark.parametrize(
    ("path", "reason"),
    [("loop", "redirects"), ("six", "redirects"), ("to-file", "scheme"), ("to-nowhere", "http_other")],
)
def test_redirects_that_lead_nowhere(tmp_path: Path, site: Website, path: str, reason: str) -> None:
    assert fault(fetcher(tmp_path), f"{site.url}/{path}").reason == reason
    assert site.asked[f"/{path}"] <= 6


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        *(("404", "http_404"), ("403", "http_403"), ("login", "http_401"), ("paid", "http_402"), ("odd", "http_other")),
        *(("picture", "not_text"), ("brotli", "encoding"), ("gzip-broken", "encoding_broken")),
    ],
)
def test_a_page_that_is_none_has_its_reason_in_both_languages(
    tmp_path: Path, site: Website, path: str, reason: str
) -> None:
    error = fault(fetcher(tmp_path), f"{site.url}/{path}")
    assert (error.reason, error.place) == (reason, f"{site.url}/{path}")
    assert error.why("en").isascii() and not error.why("zh").isascii()
    assert site.asked[f"/{path}"] == 1


@pytest.mark.parametrize("path", ["gzip", "gzip-two-members", "deflate", "deflate-raw"])
def test_packed_pages(tmp_path: Path, site: Website, path: str) -> None:
    assert ARTICLE in text(fetcher(tmp_path).fetch(f"{site.url}/{path}"))


@pytest.mark.parametrize("path", ["large", "large?length=1", "bomb"])
def test_more_than_the_limit_is_not_read(tmp_path: Path, site: Website, path: str) -> None:
    error = fault(fetcher(tmp_path), f"{site.url}/{path}")
    assert error.reason == "too_large_page" and "10 MB" in error.why("en")


def test_a_bomb_stops_at_the_limit() -> None:
    body = Body("gzip", 1_000_000)
    with pytest.raises(Unreadable):
        body.feed(gzip.compress(b"\0" * 50_000_000))
    assert len(body.data) <= 1_000_000 + 65_536


def test_a_packed_body_of_exactly_the_limit_is_whole() -> None:
    content = bytes(range(256)) * 4096
    body = Body("gzip", len(content))
    packed = gzip.compress(content)
    for at in range(0, len(packed), 7):
        body.feed(packed[at : at + 7])
    assert body.finish() == content


@pytest.mark.parametrize("path", ["slow", "slow_head"])
def test_slow_bytes_are_cut_off_in_body_and_head(tmp_path: Path, site: Website, path: str) -> None:
    limits = Limits(total_s=0.3, read_s=20)
    error = fault(fetcher(tmp_path, limits=limits), f"{site.url}/{path}")
    assert error.reason == "total_timeout" and site.asked[f"/{path}"] == 1


def test_silence_is_tried_again_and_then_told(tmp_path: Path, site: Website) -> None:
    waits: list[float] = []
    error = fault(fetcher(tmp_path, limits=Limits(read_s=0.1), sleep=waits.append), f"{site.url}/silent")
    assert error.reason == "read_timeout" and "0.1 s" in error.why("en")
    assert waits == [1.0, 4.0] and site.asked["/silent"] == 3


@pytest.mark.parametrize("path", ["cut", "garbage"])
def test_a_broken_connection_is_no_page(tmp_path: Path, site: Website, path: str) -> None:
    waits: list[float] = []
    assert fault(fetcher(tmp_path, sleep=waits.append), f"{site.url}/{path}").reason == "connection"
    assert len(waits) == 2


def test_retry_after_is_honoured_and_told(tmp_path: Path, site: Website) -> None:
    waits: list[float] = []
    said: list[str] = []
    page = fetcher(tmp_path, sleep=waits.append, log=said.append).fetch(f"{site.url}/busy")
    assert b"Harlow" in page.data and waits == [7.0, 7.0]
    assert len(said) == 2 and "429" in said[0] and "again in 7 s" in said[0]


def test_retry_after_as_a_date(tmp_path: Path, site: Website) -> None:
    now = datetime.datetime(2024, 5, 1, tzinfo=datetime.timezone.utc)
    after = email.utils.format_datetime(now + datetime.timedelta(seconds=12), usegmt=True).replace(" ", "+")
    waits: list[float] = []
    fetcher(tmp_path, sleep=waits.append, clock=now.timestamp).fetch(f"{site.url}/busy?after={after}")
    assert waits == [12.0, 12.0]


@pytest.mark.parametrize("after", ["", "soon", "-5"])
def test_a_retry_after_that_says_nothing_is_backed_off_from(tmp_path: Path, site: Website, after: str) -> None:
    waits: list[float] = []
    fetcher(tmp_path, sleep=waits.append).fetch(f"{site.url}/busy?after={after}")
    assert waits == [1.0, 4.0]


def test_a_server_that_asks_for_a_day_is_not_waited_for(tmp_path: Path, site: Website) -> None:
    assert fault(fetcher(tmp_path), f"{site.url}/long-retry").reason == "http_429"


def test_a_server_that_is_unwell_is_asked_again_at_most_twice(tmp_path: Path, site: Website) -> None:
    waits: list[float] = []
    fetch = fetcher(tmp_path, sleep=waits.append)
    assert b"Harlow" in fetch.fetch(f"{site.url}/unwell").data
    assert fault(fetch, f"{site.url}/500").reason == "http_5xx" and site.asked["/500"] == 3
    assert waits == [1.0, 1.0, 4.0]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        *(("zh-utf8", CHINESE), ("zh-gbk", CHINESE), ("zh-gbk-no-header", CHINESE), ("zh-wrong-header", CHINESE)),
        *(("utf8-said-latin", CHINESE), ("ja-sjis", JAPANESE)),
    ],
)
def test_charsets(tmp_path: Path, site: Website, path: str, expected: str) -> None:
    assert expected in text(fetcher(tmp_path).fetch(f"{site.url}/{path}"))


@pytest.mark.parametrize(
    ("path", "expected", "locator"),
    [
        ("document", "completed in 1911", {"page": 1}),
        ("pdf-said-html", "completed in 1911", {"page": 1}),
        ("report.pdf", "completed in 1911", {}),
        ("data", "height_m: 41", {"section": "$.height_m"}),
        ("table", "tower: Harlow; height: 41", {"line": 2}),
        ("notes", "completed in 1911", {"line": 1}),
    ],
)
def test_formats_by_content_then_by_type(
    tmp_path: Path, site: Website, path: str, expected: str, locator: dict[str, Any]
) -> None:
    passage = read_page(fetcher(tmp_path).fetch(f"{site.url}/{path}")).passages[0]
    assert expected in passage.text and locator.items() <= passage.locator.items()


def test_an_archive_is_not_read(tmp_path: Path, site: Website) -> None:
    with pytest.raises(Unreadable) as raised:
        read_page(fetcher(tmp_path).fetch(f"{site.url}/archive"))
    assert raised.value.reason == "binary"


# Addresses


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "2130706433", "0x7f000001", "0x7f.1", "127.1", "0177.0.0.1", "0.0.0.0", "[::1]"),
        *("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::]", "169.254.169.254"),
        *(
            "10.0.0.7",
            "192.168.1.1",
            "172.16.0.1",
            "100.64.0.1",
            "[fe80::1]",
            "[fd00::1]",
            "[::127.0.0.1]",
            "224.0.0.1",
        ),
        *("240.0.0.1", "255.255.255.255", "192.0.0.8", "198.18.0.1", "１２７.０.０.１", "127。0。0。1"),
    ],
)
def test_private_addresses_are_refused_in_every_form(tmp_path: Path, site: Website, host: str) -> None:
    error = fault(fetcher(tmp_path, allow_private=False), f"http://{host}:{site.port}/article")
    assert error.reason == "private" and "allow_private" in error.why("en") and "allow_private" in error.why("zh")
    assert not site.asked


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "1.1.1.1", "2606:2800:220:1::1", "::ffff:8.8.8.8", "2002:808:808::"]
)
def test_public_addresses(address: str) -> None:
    assert addresses.is_public(address)


def pretending(port: int, **names: list[str]) -> addresses.Resolve:
    """Name resolution of a test: each name's addresses, one a look-up; 127.0.0.1 counts as public."""

    def resolve(host: str, _: int) -> list[tuple[int, Any]]:
        address = names[host.split(".")[0]].pop(0) if host.split(".")[0] in names else host
        if address != "127.0.0.1" and not addresses.is_public(address):
            raise Unreadable("private", host, host=host, address=address)
        return [(socket.AF_INET, (address, port))]

    return resolve


def test_a_redirect_to_a_private_address_is_refused(tmp_path: Path, site: Website) -> None:
    fetch = fetcher(tmp_path, allow_private=False, resolve=pretending(site.port))
    assert fault(fetch, f"{site.url}/to-private").reason == "private"
    assert site.asked == {"/to-private": 1}


def test_the_address_that_was_checked_is_the_one_that_is_reached(tmp_path: Path, site: Website) -> None:
    """A name that changes between look and use is looked up once for each request, and each time checked."""
    resolve = pretending(site.port, rebind=["127.0.0.1", "10.0.0.1"])
    fetch = fetcher(tmp_path, allow_private=False, resolve=resolve)
    assert b"Harlow" in fetch.fetch(f"http://rebind.example:{site.port}/article").data
    assert site.headers[0]["Host"] == f"rebind.example:{site.port}"
    assert fault(fetch, f"http://rebind.example:{site.port}/article").reason == "private"
    assert site.asked["/article"] == 1


def test_of_several_addresses_the_next_is_tried(tmp_path: Path, site: Website) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        unused = taken.getsockname()[1]
    both = [(socket.AF_INET, ("127.0.0.1", unused)), (socket.AF_INET, ("127.0.0.1", site.port))]
    fetch = fetcher(tmp_path, resolve=lambda host, port: list(both))
    assert b"Harlow" in fetch.fetch(f"http://two.example:{site.port}/article").data


def test_nobody_there(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    error = fault(fetcher(tmp_path, sleep=lambda _: None), f"http://127.0.0.1:{port}/")
    assert error.reason == "connection" and "refused" in error.why("en")


def test_a_name_that_does_not_exist(tmp_path: Path) -> None:
    assert fault(fetcher(tmp_path, sleep=lambda _: None), "http://no-such-host.invalid/").reason == "dns"


def test_no_tls_where_tls_was_asked_for(tmp_path: Path, site: Website) -> None:
    error = fault(fetcher(tmp_path), f"https://127.0.0.1:{site.port}/article")
    assert error.reason == "tls" and "127.0.0.1" in error.why("zh")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
def test_certificates_are_checked_against_the_name_not_the_address(
    tmp_path: Path, site: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=tower.example"),
            *("-addext", "subjectAltName=DNS:tower.example", "-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    site.server.socket = context.wrap_socket(site.server.socket, server_side=True)
    fetch = fetcher(tmp_path, resolve=lambda host, port: [(socket.AF_INET, ("127.0.0.1", site.port))])
    error = fault(fetch, f"https://tower.example:{site.port}/article")
    assert error.reason == "tls" and "self-signed" in error.why("en").replace(" ", "-")
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    assert fault(fetch, f"https://other.example:{site.port}/article").reason == "tls"
    assert b"Harlow" in fetch.fetch(f"https://tower.example:{site.port}/article").data


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        *(("ftp://example.org/a", "scheme"), ("file:///etc/passwd", "scheme"), ("javascript:alert(1)", "scheme")),
        *(("http://", "bad_url"), ("http://example.org:port/", "bad_url"), ("http://[::1/", "bad_url")),
        *((f"http://{'a' * 64}.example/", "dns"), ("http://a..example/", "dns"), ("http://-ü.example/", "bad_url")),
    ],
)
def test_addresses_that_are_none(tmp_path: Path, url: str, reason: str) -> None:
    assert fault(fetcher(tmp_path), url).reason == reason


def test_a_password_in_an_address_is_neither_used_nor_told(tmp_path: Path) -> None:
    error = fault(fetcher(tmp_path), "http://ann:s3cret@example.org/a")
    assert error.reason == "userinfo" and "s3cret" not in str(error)


@pytest.mark.parametrize(
    ("given", "clean"),
    [
        ("HTTP://Example.ORG", "http://example.org/"),
        (" https://example.org/a b?q=ü#x ", "https://example.org/a%20b?q=%C3%BC"),
        ("https://example.org/a%20b(c)", "https://example.org/a%20b(c)"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://例え.テスト:8080/", "https://xn--r8jz45g.xn--zckzah:8080/"),
        ("http://exa\nmple.org/\r\nHost: x", "http://example.org/Host:%20x"),
    ],
)
def test_clean_url(given: str, clean: str) -> None:
    assert clean_url(given) == clean and clean_url(clean) == clean


def test_a_proxy_is_used_and_literal_private_addresses_stay_refused(
    tmp_path: Path, site: Website, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", site.url)
    monkeypatch.setenv("no_proxy", "")
    fetch = fetcher(tmp_path, allow_private=False)
    assert fault(fetch, "http://10.0.0.1/article").reason == "private"
    assert b"Harlow" in fetch.fetch("http://known-to-the-proxy-only.invalid/article").data  # the site plays the proxy
    assert [h["Host"] for h in site.headers] == ["known-to-the-proxy-only.invalid"]


# One request at a time per host


def test_one_request_at_a_time_per_host(tmp_path: Path, site: Website) -> None:
    threads = [
        threading.Thread(target=fetcher(tmp_path).fetch, args=(f"{site.url}/notes?{n}",), daemon=True) for n in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert site.asked["/notes"] == 6 and site.most_at_once == 1


def test_a_host_that_stays_busy_is_given_up(tmp_path: Path, site: Website) -> None:
    locks = HostLocks(tmp_path / "hosts", wait_s=0.1)
    with locks.one_at_a_time("127.0.0.1"):
        error = fault(Fetcher(locks, allow_private=True), f"{site.url}/article")
    assert error.reason == "host_busy" and not site.asked


_HOLDER = """
import sys, time
from pathlib import Path
sys.path.insert(0, {project!r})
from dr.agent.hosts import HostLocks
with HostLocks(Path({folder!r})).one_at_a_time("127.0.0.1"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_killed_holder_frees_the_host(tmp_path: Path, site: Website) -> None:
    project = str(Path(__file__).resolve().parent.parent.parent)
    code = _HOLDER.format(project=project, folder=str(tmp_path / "hosts"))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
        locks = HostLocks(tmp_path / "hosts", wait_s=0.1)
        with pytest.raises(Unreadable), locks.one_at_a_time("127.0.0.1"):
            pass
        holder.kill()
    assert b"Harlow" in fetcher(tmp_path).fetch(f"{site.url}/article").data


def test_requests_is_imported_only_when_something_is_fetched() -> None:
    code = "import sys, dr.agent.web; sys.exit(bool({'requests', 'urllib3', 'filelock', 'psutil'} & set(sys.modules)))"
    project = Path(__file__).resolve().parent.parent.parent
    assert subprocess.run([sys.executable, "-c", code], cwd=project, check=False).returncode == 0
