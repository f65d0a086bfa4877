"""Many simulations: which ones, in processes of one machine or of many, and what came of them."""
