"""Tables with holes: what is learned from the values that were bought, and which ones to buy next."""
