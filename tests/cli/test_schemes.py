"""`schemes` and `struct`: the catalogue listed and shown, stored arrays decoded, encoded and checked, types judged."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from ninfer_core.schemes.catalogue import SCHEMES
from service.cli import app
from tests.cli.build import safetensors
from tests.cli.terminal import Terminal
from tests.cli.test_listing import run
from tests.cli.test_verify import strict
from tests.schemes.vectors import FOLDER as VECTORS
from tests.schemes.vectors import cases

CASES = Path(__file__).resolve().parents[1] / "vectors" / "struct_types" / "cases.json"
GPTQ_CASES = Path(__file__).resolve().parents[1] / "vectors" / "cases" / "gptq"


@pytest.fixture
def q4(tmp_path: Path) -> Path:
    """A folder with a payload of Q4_0 blocks, what it decodes to, and the values before."""
    case = next(one for one in cases("ggml_q4_0") if one.name == "quantized_normal")
    (tmp_path / "payload.bin").write_bytes(case.arrays["payload"].tobytes())
    np.save(tmp_path / "expected.npy", case.arrays["expected"])
    np.save(tmp_path / "source.npy", case.arrays["source"])
    return tmp_path


def test_the_list_has_every_scheme(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "schemes")
    assert code == 0
    assert all(re.search(rf"\b{re.escape(scheme.name)}\b", out) for scheme in SCHEMES)
    code, out, _ = run(capsys, "schemes", "list", "--kind", "sparse", "--json", "-")
    document = strict(out)
    assert (code, document["schema"]) == (0, "ninfer-gate/schemes/1")
    assert [item["name"] for item in document["schemes"]] == ["spqr"]
    code, _, err = run(capsys, "schemes", "list", "--kind", "spares")
    assert code == 2
    assert "structured_block" in err
    assert run(capsys, "schemes", "list", "--match", "no such")[0] == 0


def test_tables_fit_their_window() -> None:
    for columns, arguments in ((80, ("list",)), (100, ("show", "gptq"))):
        terminal = Terminal("schemes", *arguments, columns=columns)
        assert terminal.finish() == 0
        assert max(map(len, terminal.text.splitlines())) <= columns


def test_a_scheme_is_shown_with_its_forms(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "schemes", "show", "Q4_K")
    assert code == 0
    assert all(
        text in out for text in ("ggml_q4_k", "q4_k_literal", "4.5 claimed, 4.0 declared", "144 B", "dmin")
    )
    code, out, _ = run(capsys, "schemes", "show", "nvfp4", "--json", "-")
    document = strict(out)
    assert [form["name"] for form in document["forms"]] == list(SCHEMES["nvfp4"].forms)
    assert "closed registry" in document["scheme"]["apart"]
    code, out, _ = run(capsys, "schemes", "show", "ggml_q4_0", "--shape", "2x64", "--json", "-")
    (form,) = strict(out)["forms"]
    assert form["sizes"]["parts"] == {"payload": [72]}
    assert "Cast" in form["decoder"]


def test_a_decoder_is_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "schemes", "show", "ggml_q4_0", "--onnx", "--shape", "2x64")
    assert code == 0
    assert out.startswith("<")
    assert "float[2,64]" in out
    code, _, err = run(capsys, "schemes", "show", "nvfp4", "--onnx")
    assert code == 2
    assert "nvfp4_modelopt" in err


def test_an_encoder_is_printed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "schemes", "show", "nf4_literal", "--onnx", "--encoder", "--shape", "64")
    assert code == 0
    assert "float[64]" in out
    assert "uint8[32]" in out
    code, _, err = run(capsys, "schemes", "show", "ggml_q4_0", "--onnx", "--encoder")
    assert code == 2
    assert "has no encoder" in err
    code, _, err = run(capsys, "schemes", "show", "nf4_literal", "--encoder")
    assert code == 2
    assert "--onnx" in err


def test_names_that_lead_nowhere(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run(capsys, "schemes", "show", "ggml_q4k")
    assert code == 2
    assert "ggml_q4_k" in err
    code, out, _ = run(capsys, "schemes", "show", "\x1b[31m", "--json", "-")
    assert code == 2
    assert strict(out)["schema"] == "ninfer-gate/schemes/1"


def test_decoding_and_encoding_are_the_vectors(q4: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = q4 / "values.npy"
    assert run(capsys, "schemes", "decode", "ggml_q4_0", "--in", q4 / "payload.bin", "--out", out)[0] == 0
    values = np.load(out)
    assert values.dtype == np.float32
    assert values.tobytes() == np.load(q4 / "expected.npy").tobytes()
    code, _, err = run(capsys, "schemes", "decode", "ggml_q4_0", "--in", q4 / "payload.bin", "--out", out)
    assert code == 2  # nothing is overwritten
    assert "exists" in err
    payload = q4 / "again.bin"
    assert run(capsys, "schemes", "encode", "ggml_q4_0", "--in", q4 / "source.npy", "--out", payload)[0] == 0
    assert payload.read_bytes() == (q4 / "payload.bin").read_bytes()
    code, _, err = run(
        capsys, "schemes", "encode", "ggml_q4_k", "--in", q4 / "source.npy", "--out", q4 / "k.bin"
    )
    assert code == 2
    assert "no encoder" in err
    assert sorted(path.name for path in q4.iterdir()) == [
        "again.bin", "expected.npy", "payload.bin", "source.npy", "values.npy",
    ]  # fmt: skip


def test_no_report_is_written_over_what_it_is_about(q4: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = q4 / "a=b.npz"
    np.savez(archive, x=np.zeros(18, np.uint8))
    before = archive.read_bytes()
    for name in (archive, f"payload={archive}#x"):
        code, _, err = run(capsys, "schemes", "check", "ggml_q4_0", "--in", name, "--json", archive)
        assert (code, archive.read_bytes()) == (2, before)
        assert "would be overwritten" in err


def test_a_check_says_what_it_saw(q4: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("schemes", "check", "ggml_q4_0", "--in", q4 / "payload.bin")
    code, out, _ = run(capsys, *asked)
    assert code == 0
    assert "a reference tells" in out
    code, out, _ = run(
        capsys, *asked, "--reference", q4 / "expected.npy", "--source", q4 / "source.npy", "--json", "-"
    )
    document = strict(out)
    assert (code, document["verdict"], document["schema"]) == (0, "passed", "ninfer-gate/scheme-check/1")
    assert document["coverage"] == {"bytes": {"full": 432, "total": 432}, "words": "full", "values": "full"}
    assert document["source"]["sqnr_db"] > 15
    np.save(q4 / "wrong.npy", np.load(q4 / "expected.npy") * np.float32(-2))
    code, out, _ = run(capsys, *asked, "--reference", q4 / "wrong.npy")
    assert code == 1
    assert "-0.5 times the reference" in " ".join(out.split())
    code, out, _ = run(capsys, *asked, "--reference", q4 / "wrong.npy", "--within", 1e6)
    assert code == 0
    assert "within 1e+06 of the reference" in out
    assert run(capsys, *asked, "--within", 1)[0] == 2  # of what?
    np.save(q4 / "turned.npy", np.load(q4 / "expected.npy").reshape(2, -1))
    code, out, _ = run(capsys, *asked, "--reference", q4 / "turned.npy", "--json", "-")
    assert code == 1
    assert [one["code"] for one in strict(out)["findings"]] == ["scheme.reference_mismatch"]


def test_illegal_words_fail_a_check_and_are_decoded_for_whoever_looks(
    q4: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    payload = bytearray((q4 / "payload.bin").read_bytes())
    payload[18:20] = b"\x00\x7e"  # the scale of the second block
    (q4 / "payload.bin").write_bytes(payload)
    code, out, _ = run(capsys, "schemes", "check", "ggml_q4_0", "--in", q4 / "payload.bin", "--json", "-")
    document = strict(out)
    assert (code, document["verdict"]) == (1, "failed")
    (finding,) = document["findings"]
    assert (finding["code"], finding["where"]["block"]) == ("scheme.scale_not_finite", 1)
    code, out, _ = run(
        capsys, "schemes", "decode", "ggml_q4_0", "--in", q4 / "payload.bin", "--out", q4 / "values.npy"
    )
    assert code == 0
    assert "scheme.scale_not_finite" in out
    assert np.isnan(np.load(q4 / "values.npy")).nonzero()[-1].tolist() == list(range(32, 64))


def test_what_means_nothing_is_not_decoded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = next(one for one in cases("gptq") if one.name == "b2_g32")
    parts = {name: array for name, array in case.arrays.items() if name != "expected_KxN"}
    parts["g_idx"] = np.full_like(parts["g_idx"], 99)
    np.savez(tmp_path / "parts.npz", **parts)
    asked = ("--in", tmp_path / "parts.npz", "--params", "bits=2", "--params", "group_size=32")
    code, out, _ = run(capsys, "schemes", "decode", "gptq", *asked, "--out", tmp_path / "values.npy")
    assert (code, (tmp_path / "values.npy").exists()) == (1, False)
    assert "REFUSED" in out
    assert "scheme.group_out_of_range" in out


def test_parts_come_from_archives_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = next(one for one in cases("gptq") if one.name == "b2_g32")
    np.save(tmp_path / "expected.npy", case.arrays["expected_KxN"])
    common = ("--params", "bits=2", "--params", '{"group_size": 32, "symmetric": false}')
    held = ("--reference", tmp_path / "expected.npy")
    from_npz = ("--in", VECTORS / "gptq.npz", "--prefix", "b2_g32/")
    code, out, _ = run(capsys, "schemes", "check", "gptq", *from_npz, *common, *held)
    assert code == 0
    assert "expected_KxN" in out  # lies beside, and is told
    code, out, _ = run(capsys, "schemes", "check", "gptq", *from_npz[:2], *common)
    assert code == 1
    assert "try --prefix " in out  # those behind which the archive has every part
    code, out, _ = run(
        capsys,
        "schemes",
        "check",
        "gptq",
        *(w for n in ("qweight", "qzeros", "scales", "g_idx") for w in ("--in", f"{n}={from_npz[1]}")),
        *from_npz[2:],
        *common,
        *held,
    )
    assert code == 0, out
    parts: list[object] = []
    for name in ("qweight", "qzeros", "scales"):
        (tmp_path / f"{name}.bin").write_bytes(case.arrays[name].tobytes())
        parts += ["--in", f"{name}={tmp_path / name}.bin"]
    groups = ("--in", f"g_idx={VECTORS / 'gptq.npz'}#b2_g32/g_idx")
    code, out, _ = run(
        capsys, "schemes", "check", "gptq", *parts, *groups, *common, *held, "--shape", "128x64"
    )
    assert code == 0, out
    code, out, _ = run(
        capsys, "schemes", "check", "gptq", *from_npz, "--params", "bits=4", *held, "--json", "-"
    )
    document = strict(out)
    assert (code, document["coverage"]["words"]) == (1, "none")
    assert {one["code"] for one in document["findings"]} == {"scheme.part_shape"}


@pytest.mark.parametrize(
    ("name", "form", "code"),
    [
        ("v1_stored_7", "gptq", 0),
        ("v2_stored_8", "gptq_v2", 0),
        ("v1_label_v2_zeros", "gptq", 1),
    ],
)
def test_a_label_that_the_content_contradicts(
    name: str, form: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = GPTQ_CASES / name
    settings = json.loads((folder / "quantize_config.json").read_text())
    parameters = [f"bits={settings['bits']}", f"group_size={settings['group_size']}"]
    given = [word for parameter in parameters for word in ("--params", parameter)]
    answer, out, _ = run(
        capsys,
        "schemes",
        "check",
        form,
        "--in",
        folder / "model.safetensors",
        "--prefix",
        "l.",
        *given,
        "--json",
        "-",
    )
    document = strict(out)
    assert (answer, document["coverage"]["words"]) == (code, "full")
    contradicted = [one for one in document["findings"] if one["code"] == "scheme.dialect_contradicted"]
    assert bool(contradicted) == bool(code)
    assert all(one["where"]["part"] == "qzeros" for one in contradicted)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--shape", "4x"],
        ["--shape", "-4"],
        ["--params", "bits"],
        ["--params", "bits=four"],
        ["--params", "width=4"],
        ["--params", '{"bits": 4'],
        ["--params", "bits=4", "--params", '{"bits": 4}'],
        ["--in", "nowhere.npz"],
        [],
    ],
)
def test_what_makes_no_sense(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "schemes", "check", "gptq", *(arguments or ["--in", ""]))
    assert (code, out) == (2, "")
    assert "Traceback" not in err


def test_files_that_are_not_what_they_say(q4: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (q4 / "x.npz").write_bytes(b"PK\x03\x04 and no more")
    (q4 / "x.safetensors").write_bytes(b"\xff" * 40)
    (q4 / "x.npy").write_bytes(b"\x93NUMPY")
    for name in ("x.npz", "x.safetensors", "x.npy"):
        code, out, _ = run(capsys, "schemes", "check", "ggml_q4_0", "--in", q4 / name, "--json", "-")
        assert (code, strict(out)["verdict"]) == (1, "failed"), name
    code, out, _ = run(capsys, "schemes", "check", "ggml_q4_0", "--in", q4 / "payload.bin", "--shape", "3x32")
    assert code == 1
    assert "scheme.part_shape" in out


def test_small_floats_of_a_file_are_taken_as_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = next(one for one in cases("nvfp4") if one.name == "modelopt")
    header = json.dumps(
        {
            "weight": {"dtype": "U8", "shape": [8, 32], "data_offsets": [0, 256]},
            "weight_scale": {"dtype": "F8_E4M3", "shape": [8, 4], "data_offsets": [256, 288]},
            "weight_scale_2": {"dtype": "F32", "shape": [], "data_offsets": [288, 292]},
        }
    ).encode()
    payload = b"".join(case.arrays[name].tobytes() for name in ("weight", "weight_scale", "weight_scale_2"))
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header + payload)
    np.save(tmp_path / "expected.npy", case.arrays["expected"])
    asked = ("schemes", "check", "nvfp4_modelopt", "--in", path, "--reference", tmp_path / "expected.npy")
    code, out, _ = run(capsys, *asked, "--within", 1e-6)
    assert code == 0, out
    path.write_bytes(path.read_bytes().replace(b"F8_E4M3", b"F8_E5M2"))
    code, out, _ = run(capsys, *asked)
    assert code == 1
    assert "scheme.part_dtype" in out


def test_the_reference_cases_of_struct_types(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "struct", "check", CASES)
    assert code == 0
    assert "0 otherwise" in out
    code, out, _ = run(capsys, "struct", "check", CASES, "--json", "-")
    document = strict(out)
    assert (code, document["schema"], len(document["cases"])) == (0, "ninfer-gate/struct-check/1", 83)


def test_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case = json.loads(CASES.read_text())["accept"][0]
    path = tmp_path / "one.json"
    path.write_text(json.dumps(case))
    code, out, _ = run(capsys, "struct", "check", path)
    assert code == 0
    assert "1, 0, 0, 1" in out
    code, out, _ = run(capsys, "struct", "check", path, "--limits", '{"fields": 2}')
    assert code == 1
    assert "limit_fields" in out
    assert run(capsys, "struct", "check", path, "--limits", '{"field": 2}')[0] == 2
    payload = tmp_path / "p.bin"
    payload.write_bytes(bytes.fromhex(case.pop("payload_hex")) + b"\0")
    code, out, _ = run(capsys, "struct", "check", path, "--payload", payload, "--json", "-")
    assert code == 1
    assert [one["code"] for one in strict(out)["findings"]] == ["struct.payload_size_mismatch"]
    path.write_text(json.dumps({**case, "payload_file": "q.bin"}))
    code, out, _ = run(capsys, "struct", "check", path, "--json", "-")
    assert (code, strict(out)["verdict"]) == (3, "incomplete")
    path.write_text(json.dumps({**case, "payload_file": "../p.bin"}))
    assert run(capsys, "struct", "check", path)[0] == 3  # a name leads nowhere else
    path.write_text("{")
    assert run(capsys, "struct", "check", path)[0] == 1
    assert run(capsys, "struct", "check", tmp_path / "none.json")[0] == 2
    path.write_text(json.dumps({"accept": [{**case, "size_bits": 25}]}))
    code, out, _ = run(capsys, "struct", "check", path)
    assert code == 1
    assert "expectation_differs" in out


@pytest.mark.parametrize("option", ["--checkpoint", "--recipe", "--target", "--out"])
def test_convert_takes_no_scheme(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A name of the catalogue is a file of that name to `convert`, and there is none."""
    safetensors(tmp_path / "model.safetensors", {"w": np.zeros((2, 2), np.float32)})
    given = {
        "--checkpoint": str(tmp_path),
        "--recipe": "gptq",
        "--out": str(tmp_path / "o.ninfer"),
        option: "gptq",
    }
    arguments = [word for pair in given.items() for word in pair]
    assert app.run(["convert", *arguments]) == 2
    assert "gptq" in capsys.readouterr().err
    assert not (tmp_path / "o.ninfer").exists()
