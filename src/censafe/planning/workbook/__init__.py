"""NO DATA. A plan as a workbook with live formulas."""
