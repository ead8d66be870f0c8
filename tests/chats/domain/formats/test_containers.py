"""Containers and limits (import-formats.md section 5): what is read, what is refused, and with which words."""

import codecs
import gzip
import io
import json
import stat
import struct
import zipfile
import zlib

import pytest
import zstandard

from chats.domain.formats import Limits, detect, open_source
from tests.chats.domain.formats.uploads import as_json, as_lines, brief, imported

ROW = {"messages": [{"role": "user", "content": "déjà"}, {"role": "assistant", "content": "vu"}]}
OTHER = {"messages": [{"role": "user", "content": "two"}, {"role": "assistant", "content": "2"}]}


def zipped(*members: tuple[str | zipfile.ZipInfo, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return file.getvalue()


class TestShapes:
    @pytest.mark.parametrize(
        "upload",
        [
            as_lines(ROW, OTHER),
            as_json([ROW, OTHER]),
            json.dumps([ROW, OTHER], indent=2).encode(),
            codecs.BOM_UTF8 + as_lines(ROW, OTHER),
            as_lines(ROW, OTHER).replace(b"\n", b"\r\n"),
            b"\n\n" + as_lines(ROW) + b"  \n\n" + as_lines(OTHER) + b"\n",
            as_lines(ROW, OTHER).rstrip(b"\n"),
            (json.dumps(ROW, indent=1) + "\n" + json.dumps(OTHER, indent=1)).encode(),
            as_json([ROW, OTHER]).decode().encode("utf-16"),
            codecs.BOM_UTF16_BE + as_lines(ROW, OTHER).decode().encode("utf-16-be"),
            gzip.compress(as_lines(ROW, OTHER)),
            gzip.compress(gzip.compress(as_lines(ROW, OTHER))),
            gzip.compress(as_lines(ROW)) + gzip.compress(as_lines(OTHER)),
            zipped(("a.jsonl", as_lines(ROW)), ("deep/b.json.gz", gzip.compress(as_json(OTHER)))),
        ],
    )
    def test_two_chats_are_found(self, upload):
        found = imported(upload)
        assert [brief(c)[0] for c in found.chats] == ["user: déjà", "user: two"]
        assert found.problems == []

    def test_json_lines_of_lists(self):
        long = [{"role": "user", "content": str(i)} for i in range(50)]
        assert len(imported(as_lines(ROW["messages"], long, OTHER["messages"])).chats) == 3

    def test_places_name_member_line_and_record(self):
        assert imported(as_lines(ROW, OTHER)).places == ["line 1", "line 2"]
        assert imported(json.dumps([ROW, OTHER], indent=1).encode()).places[1].endswith("record 1")
        assert imported(zipped(("x/y.jsonl", as_lines(ROW)))).places == ["x/y.jsonl"]

    def test_the_container_is_told(self):
        assert detect(io.BytesIO(gzip.compress(as_lines(ROW, OTHER)))).container == ("gzip", "jsonl")
        assert detect(io.BytesIO(zipped(("a.json", as_json(ROW))))).container == ("zip", "json")

    def test_a_path_and_an_open_file_give_the_same(self, tmp_path):
        path = tmp_path / "any.name"
        path.write_bytes(as_lines(ROW, OTHER))
        with path.open("rb") as file:
            file.seek(7)
            assert len(list(open_source(file))) == len(list(open_source(path))) == 2
            assert not file.closed

    def test_parquet_of_json_text_and_of_structs(self):
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        for column in ([json.dumps(ROW["messages"])], [ROW["messages"]]):
            file = io.BytesIO()
            parquet.write_table(arrow.table({"messages": column, "score": [float("nan")]}), file)
            found = imported(file.getvalue())
            assert brief(found.chat) == ["user: déjà", "assistant: vu"]
            assert "score" not in found.chat.metadata
            assert found.report.numbers_read_as_null >= 1

    def test_csv_is_read_for_instructions_only(self):
        text = 'instruction,input,output\n"Add, please","1\n2",3\nSay hi,,hi\n'
        assert [brief(c) for c in imported(text.encode()).chats] == [
            ["user: Add, please\n\n1\n2", "assistant: 3"],
            ["user: Say hi", "assistant: hi"],
        ]
        assert imported(b"role,content\nuser,hi\n").codes == ["not_json"]

    def test_a_large_object_is_read_piecewise(self):
        runs = [{"task_id": i, "traj": ROW["messages"], "reward": 1.0, "info": {"pad": "x" * 9000}} for i in range(300)]
        found = imported(as_json({"metrics": {"avg": 1}, "results": runs}))
        assert found.source.format == "tau-bench"
        assert len(found.chats) == 300


class TestRefusals:
    def test_nothing_in_it(self):
        for upload in (b"", b" \n\t\n", codecs.BOM_UTF8):
            assert imported(upload).codes == ["empty_file"]

    def test_text_that_is_no_json(self):
        assert imported(b"hello").codes == ["not_json"]
        assert imported(b"\x00\x01\x02").codes == ["not_json"]

    def test_json_that_is_no_conversation_shows_its_keys(self):
        found = imported(as_json({"alpha": 1, "beta": [2]}))
        assert found.problems[0].code == "unknown_format"
        assert found.problems[0].args["keys"] == ["alpha", "beta"]

    def test_latin_1_only_after_asking(self):
        upload = '[{"messages":[{"role":"user","content":"déjà vu"}]}]'.encode("latin-1")
        refused = imported(upload)
        assert (refused.codes, refused.problems[0].args["encoding"]) == (["encoding"], "utf-8")
        assert brief(imported(upload, encoding="latin-1").chat) == ["user: déjà vu"]

    def test_a_line_in_another_encoding_costs_only_itself(self):
        found = imported(
            as_lines(OTHER) + json.dumps(ROW, ensure_ascii=False).encode("latin-1") + b"\n" + as_lines(OTHER)
        )
        assert (len(found.chats), found.codes, found.problems[0].place.line) == (2, ["encoding"], 2)

    @pytest.mark.parametrize("bad", [b'{"messages": [', b"}", b"{} {}", b'{"messages": "x"}', b"7", b"null"])
    def test_bad_lines_leave_the_others(self, bad):
        found = imported(as_lines(ROW) + bad + b"\n" + as_lines(OTHER))
        assert len(found.chats) == 2
        assert [p.place.line for p in found.problems] == [2]
        assert found.report.chats_lost == 1

    def test_a_bad_first_line_too(self):
        found = imported(b'{"messages": [{"ro\n' + as_lines(ROW, OTHER))
        assert (len(found.chats), found.codes) == (2, ["invalid_json"])

    def test_a_cut_array_keeps_what_is_complete(self):
        found = imported(as_json([ROW, OTHER, ROW])[:-40])
        assert (len(found.chats), found.codes) == (2, ["truncated_json"])
        found = imported(as_json([ROW, OTHER])[:-3] + b"]oops")
        assert (len(found.chats), found.codes) == (1, ["invalid_json"])

    def test_a_cut_object_is_lost(self):
        found = imported(as_json({"messages": ROW["messages"]})[:-5])
        assert (found.chats, found.codes) == ([], ["truncated_json"])

    def test_a_cut_gzip_keeps_what_is_complete(self):
        whole = gzip.compress(as_lines(*[{**ROW, "n": str(i) * 50} for i in range(4000)]))
        found = imported(whole[: len(whole) // 2], format="openai-chat")
        assert 0 < len(found.chats) < 4000
        assert found.codes[-1] == "damaged_archive"

    def test_unknown_formats_can_not_be_asked_for(self):
        with pytest.raises(ValueError, match="unknown format"):
            open_source(io.BytesIO(b""), format="nonsense")

    def test_an_override_is_followed(self):
        found = imported(as_json({"stuff": 1, "messages": ROW["messages"]}), format="openai-chat")
        assert found.chat.source_format == "openai-chat"


class TestArchives:
    def test_litter_and_other_members_are_passed_over_and_counted(self):
        found = imported(
            zipped(
                ("__MACOSX/._a.json", b"x"),
                (".hidden.json", as_json(ROW)),
                ("a/.DS_Store", b"x"),
                ("README.txt", b"read me"),
                ("empty.json", b""),
                ("settings.json", b'{"a": 1}'),
                ("user.json", as_json(ROW)),
                ("chats/", b""),
                ("chats/one.json", as_json(ROW)),
            )
        )
        assert len(found.chats) == 1
        assert found.problems == []
        assert found.report.members_passed_over == 8

    @pytest.mark.parametrize(
        "name", ["../../evil.json", "/etc/evil.json", "a/../../evil.json", "C:\\evil.json", "..\\x.json"]
    )
    def test_names_that_lead_out_are_refused(self, name):
        found = imported(zipped((zipfile.ZipInfo(name), as_json(ROW)), ("fine.json", as_json(OTHER))))
        assert (found.codes, len(found.chats)) == (["unsafe_member"], 1)

    @pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO])
    def test_links_and_devices_are_refused(self, kind):
        link = zipfile.ZipInfo("link.json")
        link.external_attr = (kind | 0o777) << 16
        assert imported(zipped((link, b"/etc/passwd"))).codes == ["unsafe_member"]

    def test_no_zip_in_a_zip_and_two_levels_of_gzip(self):
        assert imported(zipped(("inner.zip", zipped(("a.json", as_json(ROW)))))).codes == ["nested_archive"]
        thrice = gzip.compress(gzip.compress(gzip.compress(as_json(ROW))))
        assert imported(thrice).codes == ["nested_archive"]

    def test_a_broken_member_costs_only_itself(self):
        whole = zipped(("a.json", as_json(ROW)), ("b.json", as_json(OTHER)))
        at = whole.index(b"a.json") + len("a.json") + 4
        found = imported(whole[:at] + b"\xff\xff\xff" + whole[at + 3 :])
        assert len(found.chats) == 1
        assert found.codes == ["damaged_archive"]

    def test_a_cut_archive(self):
        assert imported(zipped(("a.json", as_json(ROW)))[:-20]).codes == ["damaged_archive"]

    def test_an_encrypted_member_is_named(self):
        whole = bytearray(zipped(("a.json", as_json(ROW))))
        whole[whole.index(b"PK\x01\x02") + 8] |= 1
        assert imported(bytes(whole)).codes == ["encrypted_member"]

    def test_inspect_archives_may_hold_zstd_members(self):
        sample = {
            "id": 1,
            "epoch": 1,
            "target": "",
            "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}],
        }
        header = as_json({"eval": {"task": "greet", "run_id": "r1"}})
        found = imported(zstd_zip(("header.json", header), ("samples/1_epoch_1.json", as_json(sample))))
        assert found.source.format == "inspect"
        assert brief(found.chat) == ["user: hi", "assistant: ho"]
        assert found.chat.external_id == "r1/1/1"
        assert found.chat.metadata["task"] == "greet"


def zstd_zip(*members: tuple[str, bytes]) -> bytes:
    """A zip with method 93, which the standard library of today can't write."""
    body, directory = b"", b""
    for name, data in members:
        packed = zstandard.ZstdCompressor().compress(data)
        common = struct.pack("<HHHHHLLLHH", 63, 0, 93, 0, 0, zlib.crc32(data), len(packed), len(data), len(name), 0)
        directory += (
            struct.pack("<LH", 0x02014B50, 63) + common + struct.pack("<HHHLL", 0, 0, 0, 0, len(body)) + name.encode()
        )
        body += struct.pack("<L", 0x04034B50) + common + name.encode() + packed
    end = struct.pack("<LHHHHLLH", 0x06054B50, 0, 0, len(members), len(members), len(directory), len(body), 0)
    return body + directory + end


class TestLimits:
    def limit(self, upload: bytes, **limits: int) -> tuple[int, list[object]]:
        found = imported(upload, limits=Limits(**limits))
        assert set(found.codes) <= {"limit"}
        return len(found.chats), [p.args["limit"] for p in found.problems]

    def test_ratio_of_gzip_and_zip(self):
        bomb = as_json({"messages": [{"role": "user", "content": "a" * 3_000_000}]})
        assert self.limit(gzip.compress(bomb)) == (0, ["ratio"])
        assert self.limit(zipped(("a.json", bomb))) == (0, ["ratio"])

    def test_a_forged_size_does_not_help(self):
        whole = bytearray(zipped(("a.json", as_json({"messages": [{"role": "user", "content": "a" * 300_000}]}))))
        at = whole.index(b"PK\x01\x02") + 24
        whole[at : at + 4] = struct.pack("<L", 10)
        assert imported(bytes(whole)).chats == []

    def test_bytes_of_an_upload(self):
        rows = [{**ROW, "n": str(i)} for i in range(100)]
        assert self.limit(gzip.compress(as_lines(*rows)), upload_bytes=4000, ratio=10_000)[1] == ["upload_bytes"]
        assert self.limit(zipped(("a.jsonl", as_lines(*rows))), upload_bytes=4000) == (0, ["upload_bytes"])

    def test_bytes_of_packed_members_add_up(self):
        packed = gzip.compress(as_lines(*[{**ROW, "n": str(i)} for i in range(30)]))
        size = len(gzip.decompress(packed))
        chats, limits = self.limit(zipped(("a.gz", packed), ("b.gz", packed)), upload_bytes=size * 2 - 1)
        assert (30 <= chats < 60, limits) == (True, ["upload_bytes"])

    def test_members(self):
        assert self.limit(zipped(("a", b""), ("b", b""), ("c", b"")), members=2) == (0, ["members"])

    def test_bytes_of_a_message_and_messages_of_a_chat(self):
        big = {"messages": [{"role": "user", "content": "é" * 600}]}
        assert self.limit(as_lines(ROW, big, ROW), message_bytes=1000) == (1, ["message_bytes"])
        long = {"messages": [{"role": "user", "content": "x"}] * 5}
        assert self.limit(as_lines(ROW, long, ROW), messages=4) == (1, ["messages"])

    def test_depth(self):
        def nested(levels: int) -> bytes:
            return (
                b'{"messages": [{"role": "user", "content": "x"}], "metadata": '
                + b"[" * levels
                + b"]" * levels
                + b"}\n"
            )

        assert self.limit(as_lines(ROW) + nested(63)) == (2, [])
        assert self.limit(as_lines(ROW) + nested(64) + as_lines(ROW)) == (1, ["depth"])
        assert self.limit(as_lines(ROW) + nested(100_000)) == (1, ["depth"])
        assert self.limit(b"[" * 100_000) == (0, ["depth"])

    def test_depth_inside_arguments(self):
        call = {"id": "c", "function": {"name": "f", "arguments": '{"a":' + "[" * 80 + "]" * 80 + "}"}}
        row = {"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}]}
        assert self.limit(as_lines(ROW, row)) == (1, ["depth"])

    def test_digits(self):
        row = '{"messages": [{"role": "user", "content": "x"}], "n": %s}\n'
        assert self.limit((row % ("9" * 100)).encode() + as_lines(ROW)) == (2, [])
        assert self.limit(as_lines(ROW) + (row % ("9" * 101)).encode()) == (1, ["digits"])
        assert self.limit(as_lines(ROW) + (row % ("9" * 100_000)).encode()) == (1, ["digits"])

    def test_a_line_without_end(self):
        assert self.limit(as_lines(ROW, ROW) + b"{" + b" " * 3_000_000, record_bytes=1_000_000) == (2, ["record_bytes"])
        assert self.limit(b'["' + b"x" * 3_000_000, record_bytes=1_000_000) == (0, ["record_bytes"])


class TestCleaning:
    def test_nul_and_lone_surrogates_are_replaced_and_counted(self):
        upload = rb'{"messages": [{"role": "user", "content": "a\u0000b\ud800c\ud83d\ude00", "na\u0000me": "x"}]}'
        found = imported(upload)
        assert found.chat.chat.messages[0].content == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}c😀"
        assert found.report.replaced_characters == 3

    def test_a_raw_nul_too(self):
        assert brief(imported(b'{"messages": [{"role": "user", "content": "a\x00b"}]}').chat) == ["user: a�b"]

    def test_inside_arguments_that_are_text(self):
        call = {"id": "c", "function": {"name": "f", "arguments": '{"a": "\\u0000", "n": NaN}'}}
        found = imported(as_json({"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}]}))
        assert found.chat.details[0].tool_calls[0].arguments == {"a": "�", "n": None}
        assert (found.report.replaced_characters, found.report.numbers_read_as_null) == (1, 1)

    def test_numbers_that_are_none(self):
        row = b'{"messages": [{"role": "user", "content": ""}], "metadata": {"a": NaN, "b": -Infinity, "c": 1e9999}}'
        found = imported(row)
        assert found.chat.metadata == {"a": None, "b": None, "c": None}
        assert found.report.numbers_read_as_null == 3

    def test_the_last_of_repeated_keys_wins_and_is_counted_once(self):
        row = b'{"messages": [{"role": "user", "content": "first", "content": "last"}]}'
        found = imported(row)
        assert brief(found.chat) == ["user: last"]
        assert found.report.duplicate_keys == 1
        assert imported(row + b"\n" + row).report.duplicate_keys == 2
        assert imported(b"[" + row + b"," + row + b"]").report.duplicate_keys == 2

    def test_order_and_form_of_arguments_are_kept(self):
        call = {
            "id": "c",
            "function": {"name": "f", "arguments": '{"z": 1, "a": 1.0, "big": 123456789012345678901234}'},
        }
        (stored,) = (
            imported(as_json({"messages": [{"role": "assistant", "tool_calls": [call]}]})).chat.details[0].tool_calls
        )
        assert json.dumps(stored.arguments) == '{"z": 1, "a": 1.0, "big": 123456789012345678901234}'


class TestMoreContainers:
    def test_values_behind_one_another_on_one_line(self):
        assert len(imported(as_json(ROW) + as_json(OTHER)).chats) == 2
        assert len(imported(as_json(ROW["messages"]) + as_json(OTHER["messages"])).chats) == 2

    def test_arrays_that_were_put_together(self):
        found = imported(as_json([ROW] * 25) + b"\n" + as_json([OTHER] * 25) + b"\n")
        assert (len(found.chats), found.codes) == (50, [])
        assert found.places[-1] == "line 2, record 24"

    def test_what_stands_behind_an_array_is_told(self):
        many = json.dumps([ROW] * 25, indent=1).encode()
        found = imported(many + b"\n" + many)
        assert (len(found.chats), found.codes) == (25, ["invalid_json"])
        assert imported(as_json([ROW]) + b" oops").codes == ["invalid_json"]

    def test_a_short_row_of_a_table_costs_only_itself(self):
        found = imported(b"instruction,output\r\na\r\nb,c\r\n")
        assert (brief(found.chat), found.codes) == (["user: b", "assistant: c"], ["wrong_type"])

    def test_a_packed_archive_is_an_archive_in_an_archive(self):
        assert imported(gzip.compress(zipped(("a.json", as_json(ROW))))).codes == ["nested_archive"]

    def test_marks_of_files_that_were_put_together(self):
        found = imported((codecs.BOM_UTF8 + as_lines(ROW)) + (codecs.BOM_UTF8 + as_lines(OTHER)))
        assert (len(found.chats), found.codes) == (2, [])

    def test_zstd_is_known_by_its_first_bytes(self):
        packed = zstandard.ZstdCompressor().compress(as_lines(ROW, OTHER))
        found = imported(packed)
        assert (found.source.container, len(found.chats)) == (("zstd", "jsonl"), 2)
        assert len(imported(zipped(("a.zst", packed))).chats) == 2
        damaged = bytearray(packed)
        damaged[8:14] = b"\xff" * 6
        assert imported(bytes(damaged)).codes == ["damaged_archive"]

    def test_a_zstd_member_is_no_larger_than_its_archive_says(self):
        sample = as_json({"id": 1, "epoch": 1, "target": "", "messages": [{"role": "user", "content": "x" * 1000}]})
        whole = bytearray(zstd_zip(("header.json", as_json({"eval": {}})), ("samples/1.json", sample)))
        at = whole.rindex(b"PK\x01\x02") + 24
        whole[at : at + 4] = struct.pack("<L", 100)
        assert imported(bytes(whole)).codes == ["damaged_archive"]

    @pytest.mark.parametrize("flags", [0x800])
    def test_a_directory_that_makes_no_sense(self, flags):
        whole = bytearray(zipped(("a.json", as_json(ROW))))
        at = whole.index(b"PK\x01\x02")
        whole[at + 8 : at + 10] = struct.pack("<H", flags)
        whole[at + 46] = 0xFF
        assert imported(bytes(whole)).codes == ["damaged_archive"]

    def test_pictures_and_notes_of_an_archive_are_passed_over(self):
        found = imported(
            zipped(
                ("file-1.png", b"\x89PNG\r\n\x1a\n\xff\xfe"),
                ("voice.dat", b"\xff\xfb\x90\x64\x00"),
                ("README.md", b"[a link](b) to [another](c)"),
                ("style.css", b"{color: red}"),
                ("chats.json", as_json([ROW])),
                ("cut.json", as_json([ROW])[:-9]),
            )
        )
        assert (len(found.chats), found.codes, found.report.members_passed_over) == (1, ["truncated_json"], 4)
        latin = zipped(("a.json", '[{"messages":"é"}]'.encode("latin-1")))
        assert imported(latin).codes == ["encoding"]

    def test_a_sign_is_no_digit(self):
        row = b'{"messages": [{"role": "user", "content": "x"}], "n": -' + b"9" * 100 + b"}"
        assert (len(imported(row).chats), imported(row).codes) == (1, [])
        assert imported(row.replace(b"-", b"-9")).codes == ["limit"]

    def test_a_table_may_repeat_a_value_only_so_often(self):
        arrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        text = json.dumps([{"role": "user", "content": "x" * 50_000}])
        file = io.BytesIO()
        parquet.write_table(arrow.table({"messages": arrow.array([text] * 5000).dictionary_encode()}), file)
        found = imported(file.getvalue())
        assert found.codes == ["limit"]
        assert len(found.chats) < 5000

    def test_one_chat_of_many_records_is_bounded(self):
        said = {"role": "user", "content": "x" * 1000}
        records = [{"type": "user", "uuid": str(i), "sessionId": "s", "message": said} for i in range(50)]
        found = imported(as_lines(*records), limits=Limits(record_bytes=20_000))
        assert (found.chats, [p.args["limit"] for p in found.problems]) == ([], ["record_bytes"])

    def test_names_in_the_report_are_bounded(self):
        messages = [{"role": f"role {i}" + "x" * 999, "content": "", "k" * 999 + str(i): 1} for i in range(600)]
        report = imported(as_json(messages)).report
        assert len(report.unknown_roles) <= 500
        assert max(map(len, [*report.unknown_roles, *report.not_understood])) == 200

    @pytest.mark.parametrize("protocol", ["hermes", "react"])
    def test_arguments_written_as_text_are_cleaned_too(self, protocol):
        arguments = '{"a": "\\ud800\\u0000", "n": NaN}'
        told = {
            "hermes": f'<tool_call>{{"name": "f", "arguments": {arguments}}}</tool_call>',
            "react": f"Action: f\nAction Input: {arguments}\nObservation:",
        }
        messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": told[protocol]}]
        found = imported(as_json({"messages": messages}), text_protocol=protocol)
        (call,) = found.chat.details[1].tool_calls
        assert call.arguments == {"a": "\N{REPLACEMENT CHARACTER}" * 2, "n": None}
        assert (found.report.replaced_characters, found.report.numbers_read_as_null) == (2, 1)

    def test_deep_arguments_written_as_text_stay_text(self):
        told = '<tool_call>{"name": "f", "arguments": ' + "[" * 900 + "]" * 900 + "}</tool_call>"
        messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": told}]
        (call,) = imported(as_json({"messages": messages}), text_protocol="hermes").chat.details[1].tool_calls
        assert (call.name, call.arguments) == ("unknown", None)
