"""The certificate: what was protected and how, as JSON values and as one page made from them."""
