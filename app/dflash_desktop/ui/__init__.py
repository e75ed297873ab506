"""Everything the person sees; all Qt and pyqtgraph of this program live below here."""
