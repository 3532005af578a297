"""How fast a device is, against what it proves capable of in the same run. Level P: reported, no verdict."""
