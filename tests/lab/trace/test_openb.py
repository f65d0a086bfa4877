"""openb's CSV files become traces; the real ones are read where they are there (PILOTAGE_TRACES)."""

from __future__ import annotations

import gzip
import os
from collections import Counter
from pathlib import Path

import pytest

from pilotage.lab.trace.openb import ImportProblem, openb_records
from pilotage.lab.trace.validation import problems

from .making import told, write

NODES = "name,cpu_milli,memory_mib,gpu,model\na,64000,262144,2,P100\nb,32000,131072,0,\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
    "late,6000,12288,1,460,V100M16|P100,LS,Running,50,90,60\n"
    "first,12000,16384,2,1000,,BE,Succeeded,10,40,\n"
    "plain,1500,1024,0,0,,LS,Succeeded,20,20,20.0\n"
)


def written(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
def test_nodes_and_pods(tmp_path: Path, suffix: str) -> None:
    files = [written(tmp_path / f"pods.{suffix}", PODS), written(tmp_path / f"nodes.{suffix}", NODES)]
    records = list(openb_records(files))
    assert told(records) == [(0, "a", None), (0, "b", None), (10, "first", 30), (20, "plain", 0), (50, "late", 30)]
    with_gpus, without = (record.put_object() for record in records[:2])
    assert with_gpus["status"]["allocatable"] == {
        "cpu": "64000m",
        "memory": "262144Mi",
        "pods": "1000",
        "openb.pilotage.dev/gpu-count": "2",
        "openb.pilotage.dev/gpu-milli": "2000",
    }
    assert with_gpus["metadata"]["labels"]["openb.pilotage.dev/gpu-card-model"] == "P100"
    assert "openb.pilotage.dev/gpu-count" not in without["status"]["allocatable"]
    late = records[-1].put_object()
    assert late["metadata"]["annotations"] == {
        "openb.pilotage.dev/gpu-count": "1",
        "openb.pilotage.dev/gpu-milli": "460",
        "openb.pilotage.dev/gpu-card-model": "V100M16|P100",
    }
    assert late["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "6000m", "memory": "12288Mi"}}
    assert "annotations" not in records[3].put_object()["metadata"]


def test_the_original_name_of_a_column(tmp_path: Path) -> None:
    file = written(tmp_path / "n.csv", NODES.replace("name", "sn", 1))
    assert told(openb_records([file])) == [(0, "a", None), (0, "b", None)]


def test_one_list_of_several(tmp_path: Path) -> None:
    rows = "trace,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,count\nx,1,2,0,0,,2\ny,1,2,1,500,,1\n"
    file = written(tmp_path / "w.csv", rows)
    assert [at for at, *_ in told(openb_records([file], "x"))] == [0, 1]
    with pytest.raises(ImportProblem, match=r"has the lists x, y: say which one with --workload"):
        list(openb_records([file]))
    with pytest.raises(ImportProblem, match='"z" is not among them'):
        list(openb_records([file], "z"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,b\n1,2\n", "p.csv:1: is no openb file: nodes have"),
        ("", "p.csv:1: is no openb file"),
        (PODS.replace("12000", "many"), 'p.csv:3: cpu_milli: "many" is no number'),
        (PODS.replace("12000", "-1"), "p.csv:3: cpu_milli"),
        (PODS.replace("10,40", "40,10"), "p.csv:3: deletion_time: 10 is before"),
        (PODS.replace("first", ""), "p.csv:3: name: is empty"),
        (NODES + "c,1\n", "p.csv:4: has more or fewer cells"),
        (NODES + "c,1,2,0,,x\n", "p.csv:4: has more or fewer cells"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ImportProblem) as error:
        list(openb_records([written(tmp_path / "p.csv", text)]))
    assert problem in str(error.value)


def test_a_file_that_is_cut_off(tmp_path: Path) -> None:
    file = written(tmp_path / "p.csv.gz", NODES + "c,1,2,0,\n" * 50)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(ImportProblem, match="the compressed file is broken"):
        list(openb_records([file]))


@pytest.mark.skipif("PILOTAGE_TRACES" not in os.environ, reason="needs the traces that are not part of the repository")
def test_the_real_ones(tmp_path: Path) -> None:
    folder = Path(os.environ["PILOTAGE_TRACES"]) / "openb"
    records = list(openb_records([folder / "nodes.csv.gz", folder / "pods.csv.gz"]))
    assert Counter(record.name.kind for record in records if record.name is not None) == {"Node": 1213, "Pod": 8152}
    nodes = [record.put_object()["status"]["allocatable"] for record in records[:1213]]
    assert sum(int(node.get("openb.pilotage.dev/gpu-milli", 0)) for node in nodes) == 6_212_000
    assert sum(int(node["cpu"].removesuffix("m")) for node in nodes) == 107_018_000
    assert list(problems(write(tmp_path / "t.jsonl.gz", records))) == []
