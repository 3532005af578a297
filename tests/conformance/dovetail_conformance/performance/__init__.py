"""How fast a device is, against what it shows itself to be capable of in the same run. Level P: reported, no verdict."""
