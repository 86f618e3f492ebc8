"""Result files of every group as their scripts write them, small and with figures known by hand.

Nothing here comes from a real file: ids, texts and times are made up in the groups' schemas.
"""

import json
from typing import Any

from engine.published.audit import AuditFinding, audit
from engine.published.read import ResultFile, read_bytes

EOS = 2
PROMPT = [1, 3148, 1001, *[32000] * 576, *range(5000, 5014), 22933, 9047, 13566, 29901]
SENTENCE = "There is a road with a car on it."  # 9 words
IDS = [100, 101, 102, 103, 104, 105, 106, 107, 108, 109, EOS]  # and a full stop


def to_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def read(value: Any, name: str = "file.json") -> ResultFile:
    return read_bytes(name, to_bytes(value))


def found(value: Any, rule: str) -> list[AuditFinding]:
    return [finding for finding in audit(read(value)) if finding.rule == rule]


def single(value: Any) -> Any:
    """A copy with one row per list, as a script that was stopped early leaves it."""
    value = json.loads(to_bytes(value))
    for holder in (value, *(value.values() if isinstance(value, dict) else ())):
        for rows in holder.values() if isinstance(holder, dict) else [holder]:
            if isinstance(rows, list) and rows and isinstance(rows[0], dict):
                del rows[1:]
    return value


def ids(seed: int, count: int, end: bool = True) -> list[int]:
    """Ids that match no other seed's in any place."""
    found = [1000 * (seed + 1) + index for index in range(count)]
    return [*found[:-1], EOS] if end else found


def flat(
    count: int = 4, other: str = "llava", key: str = "llava-1.5-7b-hf"
) -> list[dict[str, Any]]:
    """A.  EventGPT: 11 tokens in 1.0 s; the other: 22 tokens in 2.0 s."""
    rows = []
    for index in range(count):
        rows.append(
            {
                "id": f"id-{index}",
                "split": "train",
                "query": "What is it?",
                "event_data": f"road/{index:06d}.npy",
                "egpt": SENTENCE,
                "egpt_time": 1.03,
                "egpt_stage1_time": 0.02,
                "egpt_stage2_time": 0.01,
                "egpt_stage3_time": 1.0,
                "egpt_token_ids": ids(2 * index, 11),
                "video_data": f"road/{index:06d}",
                key: SENTENCE + " " + SENTENCE,
                f"{other}_time": 2.3,
                f"{other}_stage1_time": 0.2,
                f"{other}_stage2_time": 0.1,
                f"{other}_stage3_time": 2.0,
                f"{other}_token_ids": ids(2 * index + 1, 22),
            }
        )
    rows[0][f"{other}_memory_model_mb"] = 14051.8 if other == "videollava" else 13481.0
    return rows


def stages(index: int, **times: float) -> dict[str, Any]:
    found: dict[str, Any] = {"sample": index, **times}
    return found | {"total_time": sum(times.values())}


def legacy(count: int = 4) -> dict[str, Any]:
    """B.  The other model's ids hold its prompt of 597; the summaries are those of the rows."""
    mine, other = [], []
    for index in range(count):
        vision = 0.1 if index == 0 else 0.005
        row = stages(index, stage1_time=0.01, stage2_time=0.02, stage3_time=vision, stage4_time=0.8)
        mine.append(row | {"output": SENTENCE, "tokens": 11, "token_ids": ids(2 * index, 11)})
        row = stages(index, stage1_time=0.01, stage2_time=0.005, stage3_time=0.006, stage4_time=1.6)
        answer = [*PROMPT, *ids(2 * index + 1, 20)]
        other.append(row | {"model": "videollava", "tokens": len(answer), "token_ids": answer})
    return {
        "config": {
            "eventgpt_model_path": "./checkpoints/EventGPT-7b",
            "videollava_model": "llava-hf/llava-1.5-7b-hf",
            "max_new_tokens": 100,
        },
        "eventgpt_summary": summary(mine),
        "eventgpt_results": mine,
        "videollava_summary": summary(other),
        "videollava_results": other,
        "speculative_decoding": {"c_ratio": mean(mine) / mean(other), "theoretical_speedup": 0.3},
    }


def mean(rows: list[dict[str, Any]], key: str = "total_time") -> float:
    return sum(row[key] for row in rows) / len(rows)


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    keys = {"stage1_avg": "stage1_time", "stage4_avg": "stage4_time", "total_avg": "total_time"}
    found = {name: mean(rows, key) for name, key in keys.items()}
    return {"samples": len(rows), "tokens_avg": mean(rows, "tokens"), **found}


def newest(count: int = 3) -> dict[str, Any]:
    """B'.  One object per sample with one per model."""
    samples = []
    for index in range(count):
        times = {"stage1_time": 0.01, "stage2_time": 0.02, "stage3_time": 0.005}
        mine = {**times, "stage4_time": 0.8, "total_time": 0.835, "tokens": 11,
                "token_ids": ids(2 * index, 11), "output": SENTENCE}  # fmt: skip
        other = {**times, "stage4_time": 1.6, "total_time": 1.635, "tokens": 20,
                 "token_ids": ids(2 * index + 1, 20), "output": SENTENCE}  # fmt: skip
        samples.append(
            {"sample": index, "eventgpt": mine, "videollava": other,
             "acceptance": {"acceptance_rate": 0.0}}
        )  # fmt: skip
    return {
        "config": {"max_new_tokens": 100},
        "summary": {
            "eventgpt": {"total_time_avg": 0.835},
            "videollava": {"total_time_avg": 1.635},
            "speedup": 1.635 / 0.835,
        },
        "samples": samples,
    }


def frames(count: int = 4, old: bool = False) -> dict[str, Any]:
    """C.  636 tokens of one event image against 8 x 576 + 35; the stated total lacks a stage."""
    made: dict[str, Any] = {"config": {"eventgpt_frames": 1, "videollava_frames": 8}}
    for model, context, times in (
        ("eventgpt", 636, (0.01, 0.01, 0.06, 0.09)),
        ("videollava", 4643, (0.08, 0.03, 0.56, 0.14)),
    ):
        names = ("stage12_time", "s3_time", "s4_time", "s5_time")
        row: dict[str, Any] = dict(zip(names, times, strict=True))
        row |= {"total_time": sum(times), "prefill_len": context}
        if old:
            row = {key: row[key] for key in (*names[1:], "prefill_len")}
        rows = [row if old else {"sample": index, **row} for index in range(count)]
        stats = {"n_samples": count, "s4_time_avg": times[2], "total_time_avg": sum(times[1:])}
        made[model] = {"stats": stats, "samples": rows}
    return made


def five(count: int = 4, errors: int = 0, semantic: bool = False) -> dict[str, Any]:
    """D.  Placeholder stage 3, doubled context, capped answers, speed-up over both models."""
    rows = []
    for index in range(count):
        mine = five_model(
            (0.002, 0.004, 0.1 if index == 0 else 0.008, 0.09, 0.44), 637, ids(2 * index, 40)
        )
        other = five_model((1.0, 0.06, 3e-6, 0.32, 0.75), 4124, ids(2 * index + 1, 50, end=False))
        other["output_tokens"][5] = mine["output_tokens"][5]  # one true match per pair
        acceptance: dict[str, Any] = {"matched_tokens": 2, "total_tokens": 51}
        if semantic:
            acceptance = {"word_overlap": 0.4, "char_similarity": 0.1, "acceptance_rate": 0.35}
        both = mine["total_time"] + other["total_time"]
        parallel = {"wall_clock_total": other["total_time"], "sequential_total": both,
                    "parallel_speedup": both / other["total_time"]}  # fmt: skip
        rows.append(
            {"sample_idx": index, "eventgpt": mine | {"model": "EventGPT"},
             "videollava": other | {"model": "Video-LLaVA"},
             "acceptance": acceptance, "parallel": parallel}
        )  # fmt: skip
    rate = 0.35 if semantic else 2 / 51
    speedup = mean([row["parallel"] for row in rows], "parallel_speedup")
    return {
        "timestamp": "20260101_000000",
        "dataset_name": "my_seq",
        "config": {"quantization": "4bit", "max_new_tokens": 50},
        "gpu_memory": {"eventgpt_model_mb": 3904.7},
        "statistics": {
            "n_samples": count,
            "acceptance_rate_avg": rate,
            "parallel": {"parallel_speedup_avg": speedup},
        },
        "results": rows,
        "errors": [failure(count + index) for index in range(errors)],
    }


def five_model(times: tuple[float, ...], context: int, answer: list[int]) -> dict[str, Any]:
    found: dict[str, Any] = {f"stage{n + 1}_time": time for n, time in enumerate(times)}
    return found | {
        "total_time": sum(times),
        "prefill_length": context,
        "output_tokens": answer,
        "output_text": f"In the scene number {answer[0]} there is a road.",
        "num_output_tokens": len(answer),
        "tokens_per_sec": len(answer) / times[4],
        "gpu_memory_mb": {"before": 1.0, "peak": 2.0},
    }


def failure(index: int) -> dict[str, Any]:
    return {"sample_idx": index, "egpt_error": "No result", "vl_error": None}


def parallel(count: int = 5, ids_too: bool = True, same: bool = False) -> dict[str, Any]:
    """E.  With ids or without; `same`: the other model repeats one token for every sample."""
    rows = []
    for index in range(count):
        mine: dict[str, Any] = {"vision_time": 0.008, "prefill_time": 0.07, "prefill_length": 637,
                                "draft_tokens": 28, "draft_time": 0.5,
                                "total_time": 0.578}  # fmt: skip
        other: dict[str, Any] = {"vision_time": 0, "prefill_time": 0.3, "prefill_length": 2075,
                                 "total_time": 0.3}  # fmt: skip
        if ids_too:
            mine |= {"output_tokens": ids(2 * index, 28), "output_text": f"In scene {index}, one."}
            answer = [10887] * 40 if same else ids(2 * index + 1, 40)
            text = "ms " * 40 if same else f"The image {index} shows a road."
            other |= {"generation_time": 0.8, "total_time": 1.1, "output_tokens": answer,
                      "output_text": text}  # fmt: skip
        rows.append(
            {"sample_idx": index, "eventgpt": mine, "videollava": other,
             "parallel": {"overlap_window": 0.2}}
        )  # fmt: skip
    return {"config": {"quantization": "4bit"}, "statistics": {"n_samples": count},
            "results": rows, "errors": []}  # fmt: skip


def pairs(kind: str = "F1", count: int = 4) -> dict[str, Any]:
    """F1, F2, F3: the draft's third id is the target's in every pair; F3's adapter lacks one."""
    rows = []
    for index in range(count):
        target = ids(2 * index + 1, 30)
        draft = ids(2 * index, 20)
        draft[2] = target[2]
        if kind == "F1":
            rows.append(
                {"id": f"id-{index}", "eventgpt_output": SENTENCE, "eventgpt_tokens": draft,
                 "eventgpt_time": 1.0, "videollava_output": SENTENCE, "videollava_tokens": target,
                 "videollava_time": 1.2, "accepted_tokens": 1, "total_compared": 20,
                 "acceptance_rate": 0.05, "c_ratio": 1 / 1.2}
            )  # fmt: skip
        else:
            row = {"sample_idx": index, "question_idx": 0, "question": "What is it?",
                   "egpt_tokens": draft, "egpt_text": SENTENCE, "vl_tokens": target,
                   "vl_text": SENTENCE}  # fmt: skip
            rows.append(row | ({"adapter_tokens": target[1:21]} if kind == "F3" else {}))
    if kind == "F1":
        stated = {"total_samples": count, "overall_token_acceptance_rate": 0.05,
                  "total_accepted_tokens": count, "avg_eventgpt_time": 1.0,
                  "avg_c_ratio": 1 / 1.2, "theoretical_speedup": 0.24}  # fmt: skip
        config = {"videollava_path": "LanguageBind/Video-LLaVA-7B-hf",
                  "eventgpt_path": "./checkpoints/EventGPT-7b"}  # fmt: skip
        return {"config": config, "results": stated, "samples": rows}
    return {"config": {"max_tokens": 50}, "summary": {"total_samples": count}, "results": rows}


def speculation(count: int = 3) -> dict[str, Any]:
    """F4, in milliseconds: sd_time leaves the draft's 300 + 120 ms out."""
    rows = []
    for index in range(count):
        target = ids(2 * index + 1, 50)
        rows.append(
            {"sample_idx": index, "question": "What is it?", "vl_output_text": "The key.",
             "vl_output_tokens": target, "vl_time_ms": 1100.0, "egpt_draft_text": "In the scene",
             "egpt_draft_tokens": ids(2 * index, 30), "adapted_draft_text": "key",
             "adapted_draft_tokens": target[1:31], "sd_output_text": "key",
             "sd_output_tokens": target[1:], "sd_time_ms": 1110.0, "accepted_tokens": 0,
             "egpt_prefill_ms": 120.0, "egpt_draft_ms": 300.0, "vl_prefill_ms": 310.0,
             "vl_verify_ms": 60.0, "vl_decode_ms": 740.0, "output_matches": False,
             "speedup": 1100 / 1110}
        )  # fmt: skip
    return {
        "config": {"max_tokens": 50},
        "summary": {"n_samples": count, "avg_speedup": 1100 / 1110, "output_match_rate": 0.0},
        "results": rows,
    }


def wallclock(count: int = 4) -> dict[str, Any]:
    """G, in milliseconds: one way to draft, half as fast, one of its texts not the baseline's."""
    alone, drafted = [], []
    for index in range(count):
        question = f"Question {index}?"
        alone.append(
            {"sample": 0, "question": question, "prefill_ms": 300.0, "decode_ms": 700.0,
             "total_ms": 1000.0, "n_tokens": 50, "text": f"Answer {index}"}
        )  # fmt: skip
        drafted.append(
            {"sample": 0, "question": question, "bl_total_ms": 1000.0, "sd_decode_ms": 1500.0,
             "sd_total_ms": 2000.0, "speedup": 0.5, "n_tokens": 50, "drafted": 100, "accepted": 5,
             "accept_rate": 0.05, "text": f"Answer {index}" if index else "Another"}
        )  # fmt: skip
    return {
        "config": {"gamma": 5},
        "stage_timing": {"videollava": {"vision_ms": 0.0, "prefill_ms": 340.0}},
        "aggregate": {"VL baseline": {"decode_ms_mean": 700.0},
                      "L1": {"speedup_mean": 0.5, "total_ms_mean": 2000.0}},
        "baseline_per_sample": alone,
        "sd_per_sample": {"L1": drafted},
    }  # fmt: skip


def texts(count: int = 5, empty: bool = False) -> dict[str, Any]:
    """H: no ids; EventGPT's texts lack their first token, or are empty."""
    answer = "" if empty else "the scene shows a road. The road has a car."
    rows = [
        {"sample_idx": index, "egpt_tokens": 0 if empty else 12, "vl_tokens": 50,
         "egpt_time": 0.4, "vl_time": 0.9, "egpt_text": answer and f"{answer} {index}",
         "vl_text": f"The image {index}.", "word_overlap": 0.4, "char_similarity": 0.1,
         "acceptance_estimate": 0.25}
        for index in range(count)
    ]  # fmt: skip
    return {
        "config": {"gamma": 5},
        "statistics": {"n_samples": count, "egpt_time_avg": 0.4, "acceptance_rate_avg": 0.25},
        "results": rows,
        "errors": [],
    }


def metrics(count: int = 5) -> dict[str, Any]:
    """H with times: EventGPT 0.01 + 0.08 + 0.4 s, Video-LLaVA 0.3 + 1.0 s with 20 ids.  The
    acceptance of 0.4 is assumed, and the speed-ups divide by less than was run."""
    rows = [
        {"sample_idx": index, "vision_time": 0.01, "prefill_time": 0.08, "prefill_length": 637,
         "draft_time": 0.4, "draft_tokens": 40, "egpt_complete_time": 0.09,
         "vl_prefill_time": 0.3, "vl_prefill_length": 4123, "vl_generation_time": 1.0,
         "vl_total_time": 1.3, "output_tokens": ids(index, 20),
         "output_text": f"{SENTENCE} {index}",
         "overlap_window": 0.21, "theoretical_draft_tokens": 21.0, "tokens_to_verify": 20,
         "estimated_acceptance_rate": 0.4, "accepted_tokens": 8, "rejected_tokens": 12,
         "speedup": 8.0, "ideal_speedup": 1.3 / 0.3}
        for index in range(count)
    ]  # fmt: skip
    stated = {
        "n_samples": count, "gamma": 5, "vision_time_avg": 0.01, "egpt_prefill_time_avg": 0.08,
        "egpt_complete_time_avg": 0.09, "vl_prefill_time_avg": 0.3, "vl_generation_time_avg": 1.0,
        "vl_total_time_avg": 1.3, "draft_tokens_avg": 40.0, "output_tokens_avg": 0.0,
        "estimated_acceptance_rate_avg": 0.4, "speedup_avg": 8.0, "ideal_speedup_avg": 1.3 / 0.3,
    }  # fmt: skip
    config = {"gamma": 5, "max_new_tokens": 100, "query": "What is it?"}
    return {"config": config, "statistics": stated, "results": rows, "errors": []}


def failed(count: int = 3) -> dict[str, Any]:
    return {"config": {}, "statistics": {}, "results": [],
            "errors": [failure(index) for index in range(count)]}  # fmt: skip


EVERY: dict[str, Any] = {
    "A": flat(),
    "B": legacy(),
    "B'": newest(),
    "C": frames(),
    "D": five(),
    "E": parallel(),
    "F": pairs(),
    "G": wallclock(),
    "H": texts(),
    "Z": failed(),
}
