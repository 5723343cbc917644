"""CONFIDENTIAL. Histograms of blocks: read, checked, and held sparse.

They come from columns (Parquet, CSV), a published P.L. 94-171 folder, an extract of the 1940 census or Census Edited Files.
What leaves this package are the spine of the blocks, their exact histograms and the counts of housing units and
facilities that are published as they are.
"""
