"""The image-text-to-text models of transformers by their model_type, and what is proved of each.

Listing models imports neither torch nor transformers, so the tables are copies; tests compare the
tables with transformers' own mappings and with its classes' signatures.
"""

from __future__ import annotations

from dataclasses import dataclass


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# forward() takes mm_encoder_outputs, what an encoder gave, in place of pixels.
_SEAM = _words(
    """
    aria aya_vision blip-2 chameleon cohere2_vision cohere_compass cosmos3_edge cosmos3_omni
    deepseek_ocr2 deepseek_vl deepseek_vl_hybrid diffusion_gemma dots3_note emu3 ernie4_5_vl_moe
    exaone4_5 fast_vlm fuyu gemma3 gemma3n gemma4 gemma4_unified glm46v glm4v glm4v_moe glm5_next
    glm_ocr glmga got_ocr2 granite4_vision granite_docling hunyuan_vl hyperclovax_vision_v2
    idefics2 idefics3 inkling2 inkling_mm_model instructblip instructblipvideo internvl janus
    kimi_k25 lfm2_vl lfm3_vl lighton_ocr llama4 llava llava_next llava_next_video llava_onevision
    minicpm_ocr minicpmv4_6 minicpmv4_7 minimax_m3_vl mistral3 mistral_large4 molmo2 muse_glimmer
    muse_spark nemotron_h_omni ovis2 paddleocr_vl paligemma perception_lm pp_chart2table
    qianfan_ocr qwen2_5_omni_thinker qwen2_5_vl qwen2_vl qwen3_5 qwen3_5_moe
    qwen3_omni_moe_thinker qwen3_vl qwen3_vl_moe qwen4_exp shieldgemma2 smolvlm step3p7
    unlimited_ocr video_llama_3 video_llava vipllava
    """
)
_NO_SEAM = _words(
    """
    blip evolla florence2 git idefics kosmos-2 kosmos-2.5 mistral4 mllama pi0 pix2struct
    pp_formulanet t5gemma2 udop vision-encoder-decoder
    """
)
# generate() cannot be called without pixels, so a seam in forward() does not help it.
_NEEDS_PIXELS = frozenset({"blip", "blip-2", "instructblip", "instructblipvideo"})
# Answers after a reused prefix were found equal (tests/verify/test_families.py); add one with its
# test.
_PREFIX_PROVED = _words(
    """
    aya_vision glm46v glm4v idefics2 idefics3 internvl lighton_ocr llava llava_next
    llava_next_video llava_onevision qwen2_5_vl qwen2_vl qwen3_vl smolvlm video_llama_3
    video_llava vipllava
    """
)
# Their processors take several pictures without an error, and their prompts have room for one.
_ONE_PICTURE = frozenset({"blip", "blip-2", "git", "instructblip"})

# What AutoModelForCausalLM knows besides, and no picture can be shown to.
_TEXT_ONLY = _words(
    """
    afmoe apertus arcee aria_text axk1 axk2 bailing_hybrid bamba bart beam bert bert-generation
    big_bird bigbird_pegasus biogpt bitnet blenderbot blenderbot-small bloom blt camembert codegen
    cohere cohere2 cohere2_moe cohere_compass_text cpmant ctrl cwm data2vec-text dbrx deepseek_v2
    deepseek_v3 deepseek_v32 deepseek_v4 diffllama doge dots1 dots3_note_text electra ernie
    ernie4_5 ernie4_5_moe exaone4 exaone_moe falcon falcon_h1 falcon_mamba flex_olmo flint gemma
    gemma2 gemma3_text gemma3n_text gemma4_assistant gemma4_text gemma4_unified_assistant
    gemma4_unified_text glm glm4 glm4_moe glm4_moe_lite glm_moe_dsa gpt-sw3 gpt2 gpt_bigcode
    gpt_neo gpt_neox gpt_neox_japanese gpt_oss gptj granite granite_swa granitemoe granitemoe_swa
    granitemoehybrid granitemoeshared helium hrm_text hunyuan_v1_dense hunyuan_v1_moe hy_v3 hy_v4
    hyperclovax inkling2_text inkling_text internlm3 iquestcoder jais2 jamba jetmoe kimi_linear
    kolibri1 laguna lfm2 lfm2_moe lfm3 llama llama4_text longcat_flash mamba mamba2 marian mbart
    megatron-bert mellum mimo_v2_flash minicpm3 minimax minimax_m2 minimax_m3_vl_text ministral
    ministral3 mistral mixtral modernbert-decoder moshi moss_transcribe_diarize mpt musicgen
    musicgen_melody mvp nanochat nemotron nemotron_h olmo olmo2 olmo3 olmo_hybrid olmoe openai-gpt
    opt pegasus persimmon phi phi3 phimoe plbart prophetnet qwen2 qwen2_moe qwen3 qwen3_5_moe_text
    qwen3_5_text qwen3_moe qwen3_next qwen4_exp_text recurrent_gemma reformer rembert roberta
    roberta-prelayernorm roc_bert roformer rwkv seed_oss smollm3 solar_open stablelm starcoder2
    trocr vaultgemma whisper xglm xlm xlm-roberta xlm-roberta-xl xlnet xlstm xmod youtu zamba
    zamba2 zaya
    """
)


@dataclass(frozen=True)
class Facts:
    """What may be done with a model of one model_type.

    `seam`: it answers from cached features; else only the hooked mode times its parts.
    `prefix`: a prompt's prefix may be reused.  `several`: a prompt may hold several pictures.
    """

    seam: bool
    prefix: bool
    several: bool


def known() -> frozenset[str]:
    """Every model_type that AutoModelForImageTextToText can load."""
    return _SEAM | _NO_SEAM


def facts(model_type: str) -> Facts:
    """The facts about one of `known()`; KeyError for another."""
    if model_type not in known():
        raise KeyError(model_type)
    return Facts(
        seam=model_type in _SEAM - _NEEDS_PIXELS,
        prefix=model_type in _PREFIX_PROVED,
        several=model_type not in _ONE_PICTURE,
    )


def reads_text_only(model_type: str) -> bool:
    """Whether transformers has it as a language model without pictures."""
    return model_type in _TEXT_ONLY
