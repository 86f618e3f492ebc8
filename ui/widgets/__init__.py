"""What several pages share: pickers, settings, links, media, words, colours."""
