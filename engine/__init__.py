"""StageScope's engine: four stages of multimodal language models, timed and compared.  No Streamlit
below this package, and no torch until a model is loaded."""
