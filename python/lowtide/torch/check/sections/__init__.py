"""The sections: what is measured.  table.py names them in their order."""
