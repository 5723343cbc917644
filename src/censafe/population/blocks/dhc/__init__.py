"""CONFIDENTIAL. Records of persons and units as the DHC reads them: checked, recoded by tables of data, and held as sparse histograms.

They come from Parquet files with the columns of the Census Edited File, or from its fixed-width files. What leaves this
folder are the exact histograms of the blocks and the counts of facilities that are published as they are.
"""
