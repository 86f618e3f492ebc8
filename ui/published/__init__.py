"""The parts of the page of published result files.  Every text of a file goes through st.text,
html.escape or a grid of plain text."""
