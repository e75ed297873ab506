"""The engine as the person sees it: loaded pair, live figures, devices."""
