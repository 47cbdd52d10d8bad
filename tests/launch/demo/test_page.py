"""The page of the demo: what it shows of a sentence, what it refuses, and how it behaves in a browser."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from launch.demo.page import EXAMPLES, HOST, MAX_BYTES, MAX_CHARACTERS, View, update_views
from tests.command import run_command
from tests.launch.demo.browser import Page, browse, find_browser

needs_gradio = pytest.mark.skipif(find_spec("gradio") is None, reason="needs gradio (pip install 'malmoi[demo]')")
needs_browser = pytest.mark.skipif(find_browser() is None, reason="needs Chromium (apt-get install chromium)")
EVIL = "<script>window.hit=1</script><img src=x onerror=window.hit=1> ${window.hit=1} {{7*7}} </textarea> 서울"


def test_a_sentence_shows_personal_data_fillings_and_tokens(views: list[View]) -> None:
    pii, filled, tokens = update_views(views, EXAMPLES[0])
    assert ("010-0123-4567", "TEL") in pii and "".join(part for part, _ in pii) == EXAMPLES[0]
    assert filled.count("%") == 5 and ("[MASK]", "special") in tokens
    assert update_views(views, "서울에 간다.")[1] == "Write [MASK] in place of a word."


def test_odd_text_does_not_break_the_page(views: list[View]) -> None:
    assert "서울" in update_views(views, "\u1109\u1165\u110b\u116e\u11af \ud83d \x00")[0][0][0]
    assert update_views(views, " \n") == [None] * 3
    assert sum(len(part) for part, _ in update_views(views, "가" * 900)[0]) == MAX_CHARACTERS


def test_a_folder_without_models_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run_command(capfd, "demo", str(tmp_path)).refused("no tokenizer, no model and no run")


@needs_gradio
def test_a_taken_port_is_refused(filler: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        port = str(other.getsockname()[1])
        run_command(capfd, "demo", str(filler), "--port", port).refused(
            f"port {port} on {HOST} cannot be used", "--port"
        )


@pytest.mark.skipif(find_spec("gradio") is not None, reason="gradio is installed")
def test_without_gradio_the_command_says_what_to_install(filler: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run_command(capfd, "demo", str(filler), "--port", str(free_port())).refused("pip install 'malmoi[demo]'")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def served(filler: Path) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """The command in its own process, with a web proxy that does not exist, and its port."""
    port = free_port()
    command = [sys.executable, "-m", "malmoi", "demo", str(filler), "--port", str(port), "--language", "ko"]
    environment = os.environ | {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        log = ""
        for line in process.stderr:
            log += line
            if "the page is at" in line:
                break
        assert process.poll() is None, log
        yield port, process
        process.kill()


@pytest.fixture(scope="module")
def page(served: tuple[int, subprocess.Popen[str]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    program = find_browser()
    assert program is not None
    with browse(program, tmp_path_factory.mktemp("chromium")) as opened:
        opened.resize(390, 844)
        opened.open(f"http://{HOST}:{served[0]}/")
        opened.wait_for("document.querySelector('.view .textfield')")
        yield opened


@needs_gradio
@needs_browser
def test_the_browser_loads_from_this_machine_only_without_errors(
    page: Page, served: tuple[int, subprocess.Popen[str]]
) -> None:
    home = f"http://{HOST}:{served[0]}/"
    assert page.requests and all(address.startswith((home, "data:", "blob:")) for address in page.requests)
    assert page.problems == []


@needs_gradio
@needs_browser
def test_typed_html_is_shown_as_text(page: Page) -> None:
    page.type(EVIL)
    page.wait_for("document.querySelector('.view .textfield').innerText.includes('{{7*7}}')")
    assert page.evaluate("document.querySelector('.view .textfield').innerText").strip() == EVIL
    assert page.evaluate(
        "window.hit === undefined && !document.querySelector('.view .textfield :is(script, img, textarea)')"
    )
    assert page.problems == []


@needs_gradio
@needs_browser
def test_hangul_is_shown_while_it_is_composed(page: Page) -> None:
    page.type("서울에 ")
    for composed in ("ㄱ", "가", "간"):
        page.ask("Input.imeSetComposition", text=composed, selectionStart=1, selectionEnd=1)
    page.wait_for("document.querySelector('.view .textfield').innerText.trim() == '서울에 간'")


@needs_gradio
@needs_browser
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_the_window_in_light_and_dark_mode(page: Page, width: int) -> None:
    grounds = set()
    for dark in (False, True):
        page.resize(width, 900, dark=dark)
        page.evaluate("window.old = true")
        page.evaluate("location.reload()")
        page.wait_for("!window.old && document.querySelector('.view .textfield')")
        page.type("메일: kim.haneul.with.a.very.long.name.for.one.line@example-company-in-seoul.co.kr [MASK] 끝")
        page.wait_for("document.querySelector('.view .textfield').innerText.includes('끝')")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2


@needs_gradio
def test_the_page_answers_this_machine_only_and_under_its_own_name(served: tuple[int, subprocess.Popen[str]]) -> None:
    assert _listening(served[0]) == ["0100007F"]  # 127.0.0.1 as /proc writes it
    for host, status in ((HOST, 200), ("evil.example", 400)):
        connection = http.client.HTTPConnection(HOST, served[0])
        connection.request("GET", "/", headers={"Host": host})
        answer = connection.getresponse()
        assert answer.status == status
        assert host != HOST or "default-src 'self'" in (answer.getheader("content-security-policy") or "")


@needs_gradio
def test_other_sites_cannot_use_it_and_nobody_can_store_files(served: tuple[int, subprocess.Popen[str]]) -> None:
    port, _ = served
    home = f"http://{HOST}:{port}"
    evil = {"Origin": "https://evil.example"}
    form = {"Content-Type": "multipart/form-data; boundary=x", "Origin": home}
    file = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\nb\r\n--x--\r\n'
    for path, body, headers, status in (
        ("/gradio_api/upload", file, form, 404),
        ("/gradio_api/upload", file, form | evil, 403),
        ("/gradio_api/queue/join", b"{}", evil, 403),
        ("/gradio_api/queue/join", b"a" * (MAX_BYTES + 1), {"Origin": home}, 413),
    ):
        connection = http.client.HTTPConnection(HOST, port)
        connection.request("POST", path, body, headers)
        assert connection.getresponse().status == status, path
    assert not [path for path in _temporary_files() if path.is_file()]


def _temporary_files() -> list[Path]:
    return [
        path for folder in Path(tempfile.gettempdir()).glob("malmoi-demo-*") for path in (folder, *folder.rglob("*"))
    ]


@needs_gradio
def test_an_idle_connection_is_closed(served: tuple[int, subprocess.Popen[str]]) -> None:
    with socket.create_connection((HOST, served[0]), timeout=60) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n")
        assert connection.recv(1) == b""


def _listening(port: int) -> list[str]:
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return [row[1].split(":")[0] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == port]


@needs_gradio
def test_ctrl_c_stops_the_page_without_a_traceback(served: tuple[int, subprocess.Popen[str]]) -> None:
    _, process = served
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 0
    assert process.stderr is not None
    rest = process.stderr.read()
    assert "the page is closed" in rest and "Traceback" not in rest
    assert not _temporary_files()
