"""The parts of the Results page for published result files.

Every text of a file goes through st.text, html.escape or a grid of plain text.
"""
