"""Images between base64, data URLs, URLs and the shapes of other formats."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiesce.adapters import ANTHROPIC, OPENAI_RESPONSES
from quiesce.registry import ContentBlock, ImageBlock, Success, block_from_json

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
AS_DATA_URL = f"data:image/png;base64,{PNG}"


def anthropic_blocks(block: ContentBlock) -> Any:
    """What Anthropic is sent for one block."""
    (user,) = ANTHROPIC.messages([Success("c", "tool", 0, None, (block,))])
    results: Any = user["content"]
    return results[0]["content"]


def responses_output(block: ContentBlock) -> Any:
    """What OpenAI Responses is sent for one block."""
    return OPENAI_RESPONSES.messages([Success("c", "tool", 0, None, (block,))])[0]["output"]


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(ImageBlock("image/png", PNG), id="by-value"),
        pytest.param(ImageBlock("image/png", PNG[:40] + "\r\n" + PNG[40:]), id="wrapped-base64"),
        pytest.param(ImageBlock("", PNG), id="no-media-type"),
        pytest.param(ImageBlock("image/jpeg", PNG), id="wrong-media-type"),
        pytest.param(ImageBlock(url=AS_DATA_URL), id="data-url"),
        pytest.param(ImageBlock(url=AS_DATA_URL.replace("=", "%3D").replace("+", "%2B")), id="escaped-data-url"),
        pytest.param(block_from_json({"type": "image", "data": PNG, "mimeType": "image/png"}), id="mcp"),
        pytest.param(block_from_json({"type": "image_url", "image_url": {"url": AS_DATA_URL}}), id="chat"),
        pytest.param(
            block_from_json({"type": "resource", "resource": {"uri": "x:y", "mimeType": "image/png", "blob": PNG}}),
            id="mcp-resource",
        ),
    ],
)
def test_every_shape_of_an_image_reaches_every_format(block: ContentBlock) -> None:
    """The bytes and the true media type arrive, however the tool gave them."""
    source = {"type": "base64", "media_type": "image/png", "data": PNG}
    assert anthropic_blocks(block) == [{"type": "image", "source": source}]
    assert responses_output(block) == [{"type": "input_image", "image_url": AS_DATA_URL, "detail": "auto"}]


def test_the_formats_own_image_is_passed_on_whole() -> None:
    """What a format understands by itself is not rebuilt; another format gets it converted."""
    native = {"type": "image", "source": {"type": "url", "url": "https://x/a"}, "cache_control": {"type": "ephemeral"}}
    assert anthropic_blocks(block_from_json(native)) == [native]  # type: ignore[arg-type]
    assert responses_output(block_from_json(native))[0]["image_url"] == "https://x/a"  # type: ignore[arg-type]
    by_id: dict[str, Any] = {"type": "input_image", "file_id": "file-1", "detail": "low"}
    assert responses_output(block_from_json(by_id)) == [by_id]
    assert anthropic_blocks(block_from_json(by_id)) == [{"type": "text", "text": "[input_image content]"}]


@pytest.mark.parametrize(
    ("image", "text"),
    [
        (ImageBlock("image/svg+xml", "PHN2Zy8+"), "[image content: image/svg+xml]"),
        (ImageBlock("", "AAAA"), "[image content]"),
        (ImageBlock("image/png", ""), "[image content: image/png]"),
        (ImageBlock(url="file:///tmp/a.png"), "[image content: file:///tmp/a.png]"),
        (ImageBlock(url="data:text/plain,hello"), "[image content]"),
        (ImageBlock(url="data:nothing"), "[image content]"),
    ],
)
def test_an_image_that_the_apis_refuse_becomes_text(image: ImageBlock, text: str) -> None:
    """One bad image must not make every later request of the history fail."""
    assert anthropic_blocks(image) == [{"type": "text", "text": text}]
    assert responses_output(image) == text


def test_common_misnomers_of_media_types_are_mended() -> None:
    """``image/jpg`` is what people write."""
    assert anthropic_blocks(ImageBlock("image/JPG", "AAAA"))[0]["source"]["media_type"] == "image/jpeg"


def test_a_data_url_without_base64_is_read_too() -> None:
    """RFC 2397 allows percent-encoded bytes, and lone surrogates are no reason to stop."""
    assert anthropic_blocks(ImageBlock(url="data:image/gif,GIF89a%00"))[0]["source"]["data"] == "R0lGODlhAA=="
    assert anthropic_blocks(ImageBlock(url="data:image/gif,\ud800"))[0]["type"] == "image"


SIGNATURES = {"image/png": b"\x89PNG\r\n\x1a\n", "image/jpeg": b"\xff\xd8\xff\xe0", "image/gif": b"GIF89a"}


@given(st.sampled_from(sorted(SIGNATURES)), st.binary(min_size=16, max_size=64))
def test_bytes_survive_the_way_to_both_apis(media_type: str, rest: bytes) -> None:
    """Base64 source and data URL hold the same bytes and the same media type."""
    raw = SIGNATURES[media_type] + rest
    image = ImageBlock("", base64.b64encode(raw).decode())
    source = anthropic_blocks(image)[0]["source"]
    assert (source["media_type"], base64.b64decode(source["data"])) == (media_type, raw)
    assert responses_output(image)[0]["image_url"] == f"data:{media_type};base64,{source['data']}"


def test_webp_is_known_by_its_bytes(succeeded: Callable[..., Success]) -> None:
    """Its signature has two parts."""
    webp = base64.b64encode(b"RIFF\x24\x00\x00\x00WEBPVP8 ").decode()
    assert anthropic_blocks(ImageBlock("image/png", webp))[0]["source"]["media_type"] == "image/webp"
    wave = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt ").decode()
    assert anthropic_blocks(ImageBlock("", wave)) == [{"type": "text", "text": "[image content]"}]
