"""The Compare page's parts."""
